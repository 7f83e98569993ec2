"""What other packages find by entry points: `pipeline` has the pipeline for zarr-python, `engine` the
engine for xarray. They import their hosts and, before they are used, neither zarrc nor NumPy."""
