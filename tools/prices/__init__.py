"""The catalog's prices, taken from a registry of prices: `make prices`."""
