#!/usr/bin/env python3
"""DeepSpeed ZeRO-Infinity on the shape of the comparison: weights and optimizer on disk.

The model of rival_torch.py under ZeRO stage 3, one process, on the CPU or the GPU (--device
cuda), parameters and optimizer states on --nvme, f32 or bf16. Nothing is recomputed: at these
micro-batches the activations fit, and DeepSpeed is faster so. Speaks as
rival_torch.py does, and prints bytes that the system read and wrote for the
process, which is what /proc/self/io counts.
"""
import argparse
import os
import sys

# Before torch: one process.
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29533")
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_SIZE="1", DS_SKIP_CUDA_CHECK="1")
# The extensions are built with the interpreter's ninja.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]

import rival_torch  # noqa: E402


def configuration(options):
    place = {"device": "nvme", "nvme_path": options.nvme, "pin_memory": options.device == "cuda"}
    # Of 12 width^2 elements a layer, and 4 width^2 of its largest parameter.
    layer = 12 * options.width ** 2
    bucket = int(1.4 * layer)
    return {
        "train_micro_batch_size_per_gpu": options.batch,
        "gradient_accumulation_steps": options.accumulate,
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95],
                                                  "weight_decay": 0.1}},
        "zero_optimization": {
            "stage": 3,
            "offload_param": {**place, "buffer_count": 8,
                              "buffer_size": options.buffer or int(0.7 * layer),
                              "max_in_cpu": 0},
            "offload_optimizer": {**place, "buffer_count": 16, "pipeline_read": True,
                                  "pipeline_write": True},
            "sub_group_size": bucket,
            "stage3_prefetch_bucket_size": bucket,
            "stage3_max_live_parameters": 2 * bucket,
            "stage3_max_reuse_distance": 0,
            "stage3_param_persistence_threshold": 10_000,
            "reduce_bucket_size": bucket,
        },
        "aio": {"block_size": 1 << 20, "queue_depth": 16, "intra_op_parallelism": 1,
                "single_submit": False, "overlap_events": True},
        "bf16": {"enabled": options.bf16},
        "steps_per_print": 1 << 30,
        "zero_allow_untested_optimizer": True,
    }


def main():
    parser = rival_torch.arguments(__doc__)
    parser.add_argument("--nvme", required=True, help="directory for parameters and states")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--accumulate", type=int, default=4, help="micro-batches of a step")
    parser.add_argument("--buffer", type=int, default=0,
                        help="elements of a buffer (0: 0.7 of a layer's)")
    options = parser.parse_args()
    os.environ.setdefault("DS_ACCELERATOR", options.device)

    # DeepSpeed logs to stdout; what `compare` reads goes to what was stdout.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import torch
    import deepspeed
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    deepspeed.init_distributed(dist_backend="nccl" if options.device == "cuda" else "gloo")
    config = configuration(options)
    with deepspeed.zero.Init(config_dict_or_path=config, remote_device="nvme"):
        model = rival_torch.make_model(options)
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                           config=config)
    print(f"deepspeed {deepspeed.__version__}, torch {torch.__version__}", file=out)
    data = rival_torch.Batches(options)

    def step():
        losses = []
        for _ in range(options.accumulate):
            loss = engine(*data.next())
            engine.backward(loss)
            engine.step()
            losses.append(loss.item())
        if options.device == "cuda":
            torch.cuda.synchronize()
        return sum(losses) / len(losses)

    rival_torch.serve(step, out)


if __name__ == "__main__":
    main()
