boa.optimizer @functions {} states {} prepare {
^bb0(%t: f64):
  %number = arith.fptosi %t : f64 to i32
  %exponent = arith.sitofp %number : i32 to f64
  %power = math.powf %t, %exponent : f64
  %scalar = arith.truncf %power : f64 to f32
  boa.yield %scalar : f32
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %scalar: f32):
  %sine = math.sin %g : f32
  %change = arith.mulf %rate, %sine : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next : f32
}
}
