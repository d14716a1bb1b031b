//! The words that jittrace's sources speak.
#![no_std]
