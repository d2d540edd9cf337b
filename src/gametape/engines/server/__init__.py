"""What every protocol of a model server shares: addresses, keys, the HTTP client, and its errors."""
