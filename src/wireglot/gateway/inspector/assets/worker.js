self.onmessage=t=>{let{id:s,text:a}=t.data;try{self.postMessage({id:s,value:JSON.parse(a)})}catch(e){self.postMessage({id:s,problem:e instanceof Error?e.message:String(e)})}};
