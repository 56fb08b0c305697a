// posenc-train-rank: one process of a training run, for kill_and_resume.py.
//   posenc-train-rank STORE RANK SIZE CHECKPOINT STEPS SECONDS
// Resumes from CHECKPOINT if it exists. Prints the step of each report. Exit status: 0 for a
// finished run, 3 for one that a signal stopped, 1 with a message for an error.

#include <ATen/Parallel.h>
#include <torch/utils.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "posenc/train/fused_adam.h"
#include "posenc/train/gloo.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/stop_signal.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/train/trainer.h"
#include "posenc/transformer/transformer.h"

namespace {

std::vector<posenc::TokenPair> some_pairs() {
  std::vector<posenc::TokenPair> pairs;
  for (int64_t i = 0; i < 60; ++i) {
    posenc::TokenPair pair{{3 + i % 9, 3 + i % 7}, {1}};
    for (int64_t k = 0; k <= i % 5; ++k) pair.tgt.push_back(3 + (i + k) % 9);
    pair.tgt.push_back(2);
    pairs.push_back(pair);
  }
  return pairs;
}

// The vocabulary makes a checkpoint of some MB, so that a signal often comes while it is written.
posenc::TransformerOptions model_options() {
  return posenc::TransformerOptions(6000, 6000)
      .d_model(64)
      .num_heads(2)
      .num_encoder_layers(1)
      .num_decoder_layers(1)
      .d_ff(32)
      .max_len(16)
      .dropout(0.1)
      .tie(posenc::Tying::ThreeWay);
}

int train(char** arguments) {
  const std::string store = arguments[1], checkpoint = arguments[4];
  const int rank = std::stoi(arguments[2]), size = std::stoi(arguments[3]);
  const std::chrono::seconds timeout(std::stoi(arguments[6]));
  at::set_num_threads(1);
  const posenc::StopSignal stop;
  const auto group = posenc::gloo_group(c10::make_intrusive<c10d::FileStore>(store, size), rank,
                                        size, posenc::GroupOptions().timeout(timeout));
  torch::manual_seed(1);
  posenc::Transformer model(model_options());
  torch::manual_seed(static_cast<uint64_t>(100 + rank));  // dropout differs between processes
  posenc::FusedAdam optimizer(model->parameters(), posenc::FusedAdamOptions(1.0));
  posenc::LambdaLR schedule(optimizer, posenc::warmup_factor(64, 20));
  posenc::PairLoader loader(some_pairs(), posenc::PairLoaderOptions().max_rows(6).seed(5));
  posenc::Trainer trainer(
      {*model, &optimizer, &schedule}, loader,
      [&](const posenc::PairBatch& batch) {
        const auto logits = model->forward(batch.src, batch.tgt_input(), batch.src_mask(),
                                           posenc::AttentionMask::causal());
        return posenc::functional::token_cross_entropy(
            logits, batch.tgt_labels(),
            posenc::functional::TokenCrossEntropyFuncOptions().ignore_index(0));
      },
      posenc::TrainerOptions(std::stoi(arguments[5]))
          .group(group)
          .clip_norm(1.0)
          .checkpoint(checkpoint)
          .checkpoint_every(1)
          .report_every(1)
          .report([](const posenc::TrainingProgress& progress) {
            std::printf("step %d\n", static_cast<int>(progress.step));
            std::fflush(stdout);
          })
          .stop([&] { return stop.requested(); }));
  if (std::filesystem::exists(checkpoint)) trainer.resume(checkpoint);
  const bool is_done = trainer.train();
  try {
    group->barrier()->wait();  // a process that has left is taken for lost by those still at work
  } catch (const std::exception&) {  // and one that is lost now is not needed any more
  }
  return is_done ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  try {
    return train(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
