"""Free runs: forecasts fed back as inputs, how they go wrong, and what their growth predicts."""
