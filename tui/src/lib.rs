//! The live view of a model.
