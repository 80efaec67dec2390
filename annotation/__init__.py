"""The human study: reconstruction sets go in, what people recognise in them comes out."""

__version__ = "0.1.0"
