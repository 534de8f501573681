"""Two datasets side by side: what is slower, what varies more, what is new, and whether that is more than noise."""
