//! Every metric in one struct. Children are resolved once at start: nothing on the data path looks up a label.
