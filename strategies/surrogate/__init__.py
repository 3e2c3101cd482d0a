"""The models behind the default strategy: what is expected of settings not tried."""
