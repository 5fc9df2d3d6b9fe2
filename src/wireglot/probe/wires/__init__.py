"""Each dialect as the probe writes and reads it: plain JSON, so that no codec of ours hides what is wrong."""
