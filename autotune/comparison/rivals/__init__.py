"""Rivals: other tuners' own strategies on recorded spaces, one file a tuner; needs the extra `rivals`."""
