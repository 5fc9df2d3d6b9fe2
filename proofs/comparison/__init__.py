"""`make same`: whether two trees behave alike, seen from outside."""
