// RUN: boa-opt %s --split-input-file --verify-diagnostics

// What the table of settings has not is refused: a word that is not read means
// something else than what stands there.

// All that there are, at an end of its range.

module {
  boa.config @model {name = "m", vocab = 256 : i64, context = 1 : i64}
  boa.config @train {
    data = "d",
    objective = "masked",
    mask_probability = 1.0,
    mask_token = 255 : i64,
    batch = 1048576 : i64,
    steps = 1099511627776 : i64,
    seed = 9223372036854775807 : i64,
    clip = 1 : i64,
    weights = "bf16",
    optimizer = {kind = "sgd", beta1 = 0.0, beta2 = 0.9999, eps = 1.0e-30, weight_decay = 1.0, momentum = 1.0, rate = "cosine", peak = 1.0e+06, floor = 0.0, warmup = 0 : i64},
    evaluate_every = 0 : i64,
    evaluate_batches = 1 : i64,
    commit_every = 0 : i64,
    commit_seconds = 0.0,
    commit_keep = 1000 : i64,
    nonfinite = "skip"
  }
  boa.config @plan {
    micro_batch = 1 : i64,
    update = "device",
    schedule = "horizontal",
    delay = 1 : i64,
    prefetch = 1024 : i64,
    recompute = false,
    place = {weights = "ssd", gradients = ["host", 0.4, "ssd"], optimizer = ["device", 0.3, "host", 0.3, "ssd"], checkpoints = "host", boundary_gradients = "device", saved = ["ssd"]}
  }
  boa.config @machine {
    name = "n", device = "split", kernels = "amx", memory = "separate", device_memory = 0 : i64,
    host_memory = 4611686018427387903 : i64, direct = true, threads = 4096 : i64, attention = "own",
    compute = {f32 = 1 : i64, bf16 = 1 : i64}, device_bandwidth = {f32 = 1 : i64, bf16 = 1 : i64}, to_device = 1 : i64, to_host = 1 : i64, optimizer = 1 : i64,
    host_bandwidth = 1 : i64, compute_attention = {f32 = 1 : i64, bf16 = 1 : i64}, both_ways = 1 : i64, checksum = 1 : i64,
    ssd = [{path = "a", read = 1 : i64, write = 1 : i64, both = 1 : i64, latency = 1 : i64}, {}]
  }
}

// -----

// expected-error @below {{'boa.config' op expected to be named @model, @train, @plan or @machine}}
boa.config @training {}

// -----

// expected-error @below {{'boa.config' op @plan has no setting 'dealy', did you mean 'delay'?}}
boa.config @plan {dealy = 0.25}

// -----

// expected-error @below {{'boa.config' op @machine has no setting 'batch'}}
boa.config @machine {batch = 8 : i64}

// -----

// In a dictionary, and in one of a list.

// expected-error @below {{'boa.config' op @train has no setting 'optimizer.warmpu', did you mean 'optimizer.warmup'?}}
boa.config @train {optimizer = {warmpu = 10 : i64}}

// -----

// expected-error @below {{'boa.config' op @machine has no setting 'ssd[1].reed', did you mean 'ssd[1].read'?}}
boa.config @machine {ssd = [{path = "a"}, {path = "b", reed = 1 : i64}]}

// -----

// Words.

// expected-error @below {{'boa.config' op expected schedule to be "vertical" or "horizontal" but found "vertcal"}}
boa.config @plan {schedule = "vertcal"}

// -----

// expected-error @below {{'boa.config' op expected nonfinite to be "stop" or "skip" but found "skp"}}
boa.config @train {nonfinite = "skp"}

// -----

// expected-error @below {{'boa.config' op expected update to be "host" or "device" but found "ssd"}}
boa.config @plan {update = "ssd"}

// -----

// expected-error @below {{'boa.config' op expected objective to be "next_token" or "masked" but found 1 : i64}}
boa.config @train {objective = 1 : i64}

// -----

// expected-error @below {{'boa.config' op expected weights to be "f32" or "bf16" but found "f16"}}
boa.config @train {weights = "f16"}

// -----

// expected-error @below {{'boa.config' op expected optimizer.kind to be "adamw", "sgd" or "lion" but found "adam"}}
boa.config @train {optimizer = {kind = "adam"}}

// -----

// expected-error @below {{'boa.config' op expected optimizer.rate to be "constant", "linear" or "cosine" but found "cos"}}
boa.config @train {optimizer = {rate = "cos"}}

// -----

// expected-error @below {{'boa.config' op expected memory to be "unified" or "separate" but found "sepparate"}}
boa.config @machine {memory = "sepparate"}

// -----

// expected-error @below {{'boa.config' op expected device to be "cpu", "split" or "cuda" but found "gpu"}}
boa.config @machine {device = "gpu"}

// -----

// Numbers: of another type, out of range, not a number. true is an i1.

// expected-error @below {{'boa.config' op expected delay to be a number between 0 and 1 but found "x"}}
boa.config @plan {delay = "x"}

// -----

// expected-error @below {{'boa.config' op expected delay to be a number between 0 and 1 but found 1.250000e+00 : f64}}
boa.config @plan {delay = 1.25}

// -----

// expected-error @below {{'boa.config' op expected delay to be a number between 0 and 1 but found 0x7FF8000000000000 : f64}}
boa.config @plan {delay = 0x7FF8000000000000 : f64}

// -----

// expected-error @below {{'boa.config' op expected delay to be a number between 0 and 1 but found true}}
boa.config @plan {delay = true}

// -----

// expected-error @below {{'boa.config' op expected delay to be a number between 0 and 1 but found 2 : i64}}
boa.config @plan {delay = 2 : i64}

// -----

// expected-error @below {{'boa.config' op expected optimizer.beta2 to be a number of at least 0 and below 1 but found 1.000000e+00 : f64}}
boa.config @train {optimizer = {beta2 = 1.0}}

// -----

// expected-error @below {{'boa.config' op expected batch to be an i64 between 1 and 1048576 but found 8 : i32}}
boa.config @train {batch = 8 : i32}

// -----

// expected-error @below {{'boa.config' op expected micro_batch to be an i64 between 1 and 1048576, or 0 but found -1 : i64}}
boa.config @plan {micro_batch = -1 : i64}

// -----

// expected-error @below {{'boa.config' op expected prefetch to be an i64 between 0 and 1024 but found 1.000000e+00 : f64}}
boa.config @plan {prefetch = 1.0}

// -----

// expected-error @below {{'boa.config' op expected to_host to be an i64 of at least 1, or 0 but found -1 : i64}}
boa.config @machine {to_host = -1 : i64}

// -----

// expected-error @below {{'boa.config' op expected recompute to be true or false but found 1 : i64}}
boa.config @plan {recompute = 1 : i64}

// -----

// expected-error @below {{'boa.config' op expected data to be a string but found 1 : i64}}
boa.config @train {data = 1 : i64}

// -----

// Settings of settings.

// expected-error @below {{'boa.config' op expected optimizer to be a dictionary but found "adamw"}}
boa.config @train {optimizer = "adamw"}

// -----

// expected-error @below {{'boa.config' op expected ssd to be a list of dictionaries but found 3 : i64}}
boa.config @machine {ssd = 3 : i64}

// -----

// expected-error @below {{'boa.config' op expected ssd to be a list of dictionaries but found ["state"]}}
boa.config @machine {ssd = ["state"]}

// -----

// expected-error @below {{'boa.config' op expected ssd[0].latency to be an i64 of at least 1, or 0 but found -1 : i64}}
boa.config @machine {ssd = [{latency = -1 : i64}]}

// -----

// Places: a tier that there is, a share behind each but the last, something left
// for the last.

// expected-error @below {{'boa.config' op expected place.weights to be "device", "host" or "ssd", or a list of them; behind each but the last a number of layers, then shares above 0, together below 1 but found "sdd"}}
boa.config @plan {place = {weights = "sdd"}}

// -----

// expected-error @below {{but found ["host", 4.000000e-01, "sdd"]}}
boa.config @plan {place = {weights = ["host", 0.4, "sdd"]}}

// -----

// expected-error @below {{but found ["host", "ssd"]}}
boa.config @plan {place = {gradients = ["host", "ssd"]}}

// -----

// expected-error @below {{but found ["host", 4.000000e-01]}}
boa.config @plan {place = {optimizer = ["host", 0.4]}}

// -----

// expected-error @below {{but found []}}
boa.config @plan {place = {checkpoints = []}}

// -----

// expected-error @below {{but found ["device", 5.000000e-01, "host", 5.000000e-01, "ssd"]}}
boa.config @plan {place = {saved = ["device", 0.5, "host", 0.5, "ssd"]}}

// -----

// expected-error @below {{but found ["host", 0.000000e+00, "ssd"]}}
boa.config @plan {place = {boundary_gradients = ["host", 0.0, "ssd"]}}

// -----

// expected-error @below {{but found ["host", 0, "ssd"]}}
boa.config @plan {place = {weights = ["host", 0, "ssd"]}}

// -----

// A share is of the layers that no number has taken.

// expected-error @below {{but found ["host", 4.000000e-01, "device", 2, "ssd"]}}
boa.config @plan {place = {weights = ["host", 0.4, "device", 2, "ssd"]}}

// -----

// Settings that contradict one another.

// expected-error @below {{'boa.config' op has the ssd "a" twice}}
boa.config @machine {ssd = [{path = "a"}, {path = "b"}, {path = "a"}]}

// -----

// Kernels compute in f32.

// expected-error @below {{'boa.config' op expected optimizer.peak to fit f32: 0, or at least 1.18e-38 but found 9.9999999999999997E-61 : f64}}
boa.config @train {optimizer = {peak = 1.0e-60}}
