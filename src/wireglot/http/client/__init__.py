"""HTTP/1.1 toward upstreams: dialing, TLS, proxies, pools, timeouts, content codings."""
