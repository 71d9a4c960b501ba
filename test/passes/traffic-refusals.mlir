// RUN: boa-opt %s --split-input-file --verify-diagnostics

// A row of traffic has a run, a direction, and roles with bytes. Each is there once.

boa.step @step(%step, %pending) traffic {
  // expected-error @below {{expected first, second or each but found third}}
  third read weights 12
} {
}

// -----

boa.step @step(%step, %pending) traffic {
  // expected-error @below {{expected read, written, to_device or to_host but found weights}}
  each weights 12
} {
}

// -----

boa.step @step(%step, %pending) traffic {
  // expected-error @below {{counts weights twice}}
  each read weights 12, momentum 12, weights 13
} {
}

// -----

boa.step @step(%step, %pending) traffic {
  each read weights 12
  // expected-error @below {{counts each read twice}}
  each read weights 13
} {
}

// -----

boa.step @step(%step, %pending) traffic {
  each read weights
// expected-error @below {{expected integer value}}
} {
}
