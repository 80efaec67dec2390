"""Statistics: how well metrics agree with people. Tables and arrays in, tables out."""
