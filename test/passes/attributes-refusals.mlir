// RUN: boa-opt %s --split-input-file --verify-diagnostics

// Each attribute of the dialect has its places, and its values. Passes rely on both.

// expected-error @below {{expected boa.most_chunks to be an i64 of at least 1 but found 0 : i64}}
module attributes {boa.most_chunks = 0 : i64} {
}

// -----

// expected-error @below {{expected boa.constants to be an i64 of 0 to 2^56 but found -100000000 : i64}}
module attributes {boa.constants = -100000000 : i64} {
}

// -----

// expected-error @below {{expected boa.workspace to be an i64 of 0 to 2^56 but found 9223372036854775807 : i64}}
module attributes {boa.workspace = 9223372036854775807 : i64} {
}

// -----

// expected-error @below {{has an attribute that the dialect does not know: boa.wokspace, did you mean boa.workspace?}}
module attributes {boa.wokspace = 1 : i64} {
}

// -----

// expected-error @below {{'boa.group' op expected boa.layer to be without a value but found 1 : i64}}
boa.group @a repeat 1 attributes {boa.layer = 1 : i64} {
}

// -----

// expected-error @below {{expected boa.param to be the name of a parameter, @GROUP::@NAME, but found @a}}
func.func private @f(tensor<4xf32> {boa.param = @a})

// -----

// expected-error @below {{expected boa.saved to be letters, digits and '_', or without a value, but found "a.b"}}
func.func private @f(tensor<4xf32> {boa.saved = "a.b"})

// -----

// expected-error @below {{expected boa.param or boa.saved, not both of one value}}
func.func private @f(tensor<4xf32> {boa.saved, boa.param = @a::@b})

// -----

// expected-error @below {{expected boa.place on a result of a function or a boa.storage}}
func.func private @f(tensor<4xf32> {boa.place = "ssd"})

// -----

// expected-error @below {{expected boa.cache to be the number of a cache of type 'tensor<4xf32>' but found 0}}
func.func private @f(tensor<4xf32>) -> (tensor<4xf32> {boa.cache = 0 : i64})

// -----

// expected-error @below {{expected boa.buffer on an argument of a kernel or a result of a kernel}}
func.func private @f(tensor<4xf32> {boa.buffer = 0 : i32})

// -----

// expected-error @below {{expected traffic to be bytes by run, direction and label but found {each = {read = {weights = 1 : i32}}}}}
boa.step @step(%step, %pending) attributes {traffic = {each = {read = {weights = 1 : i32}}}} {
}

// -----

// expected-error @below {{expected traffic to be bytes by run, direction and label but found 5 : i64}}
boa.step @step(%step, %pending) attributes {traffic = 5} {
}
