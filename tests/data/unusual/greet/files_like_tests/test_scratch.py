"""A scratch pad: run it by hand."""

from greet import greet

if __name__ == "__main__":
    for name in ("Ada", "", "世界"):
        print(repr(greet(name)))
