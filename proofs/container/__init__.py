"""The container of this project, built and tried: by an engine, or in a root directory without one."""
