"""Commands that run elsewhere, whatever leads there: processes here that stand for them."""
