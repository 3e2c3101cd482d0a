"""Settings, figures, trials, profiles and the Strategy protocol, as plain data. Pure."""
