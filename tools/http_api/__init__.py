"""The gateway's HTTP API as an OpenAPI document and as a page, written from the routes that it has."""
