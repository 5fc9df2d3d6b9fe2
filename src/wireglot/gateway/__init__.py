"""The gateway. Only this package and `stores` use async I/O, sockets, clocks, logs and the environment."""
