// One of the processes that data_parallel.py times: the training step of train_step_benchmark.cpp,
// with gradients summed over the processes of a group.
//
//     posenc_rank_benchmark MODEL MODEL.safetensors STORE RANK SIZE
//
// Answers a line `THREADS PARTS COPIES` with the seconds of a step: PARTS micro-batches of COPIES
// times the file's batch.

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "posenc/train/clip_grad_norm.h"
#include "posenc/train/data_parallel.h"
#include "posenc/train/gloo.h"
#include "train_step.h"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[4]), size = std::atoi(argv[5]);
  at::set_num_threads(1);
  posenc::benchmarks::TrainStep step(argv[1], argv[2], /*fused=*/true);
  if (!step.same) {
    std::cerr << "the loss differs from Python's\n";
    return 1;
  }
  posenc::RankGroup group;
  if (size > 1)
    group = posenc::gloo_group(c10::make_intrusive<c10d::FileStore>(argv[3], size), rank, size);
  posenc::DataParallel parallel(step.model, group);
  std::cout << "ready" << std::endl;
  for (int threads, parts, copies; std::cin >> threads >> parts >> copies;) {
    at::set_num_threads(threads);
    const auto src = step.src.repeat({copies, 1}), tgt = step.tgt.repeat({copies, 1});
    const auto start = std::chrono::steady_clock::now();
    step.optimizer->zero_grad();
    for (int part = 0; part < parts; ++part) {
      std::optional<posenc::DataParallelPause> pause;
      if (part + 1 < parts) pause.emplace(parallel.pause());
      (step.loss(src, tgt) / (parts * size)).backward();
    }
    parallel.finish();
    posenc::clip_grad_norm(step.model, 1.0);
    step.optimizer->step();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::cout << taken.count() << std::endl;
  }
}
