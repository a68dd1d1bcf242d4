"""NaN and infinity in one recorded run: where they begin, whether that was meant, and what brought them."""
