"""Reads `wireglot.toml`, the environment and the command line into one complete, checked `Settings`."""

from __future__ import annotations

from wireglot.gateway.config.build import load
from wireglot.gateway.config.problems import ConfigError, ConfigProblem
from wireglot.gateway.config.read import find
from wireglot.gateway.config.watch import Watcher

__all__ = ["ConfigError", "ConfigProblem", "Watcher", "find", "load"]
