// Trains on the processes that a launcher starts, each with its own share of every batch; alone
// without a launcher:
//   torchrun --no-python --nproc-per-node 2 build/data_parallel
#include <posenc/posenc.h>
#include <posenc/train/gloo.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <exception>

constexpr int64_t kVocab = 1000;

void train(const posenc::RankGroup& group) {
  torch::manual_seed(1);  // every process draws the same batches
  torch::nn::Sequential model(posenc::TokenEmbedding(posenc::TokenEmbeddingOptions(kVocab, 64)),
                              torch::nn::Linear(64, kVocab));
  posenc::FusedAdam adam(model->parameters(), posenc::FusedAdamOptions(1e-2));
  posenc::DataParallel parallel(model, group);  // rank 0's weights for all

  const auto loss_of = [&](const torch::Tensor& ids) {  // the sum over the tokens
    const auto targets = (ids * 7 + 3) % kVocab;
    return torch::nn::functional::cross_entropy(
        model->forward(ids).flatten(0, 1), targets.flatten(),
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  };
  for (int step = 0; step < 100; ++step) {
    const auto batch = torch::randint(kVocab, {33, 16});
    const auto mine = batch.tensor_split(group.size())[group.rank()];  // shares may differ
    adam.zero_grad();
    (loss_of(mine) / batch.numel()).backward();  // by the targets of all, not of this process
    parallel.finish();                           // now every gradient is the whole batch's
    posenc::clip_grad_norm(model, 1.0);
    adam.step();
  }
  if (group.rank() == 0) {
    const torch::NoGradGuard no_grad;
    const auto all = torch::arange(kVocab).view({-1, 10});
    std::printf("loss %.3f\n", loss_of(all).item<double>() / kVocab);
  }
}

int main() {
  try {
    train(posenc::group_from_environment());
  } catch (const std::exception& error) {  // a posenc::GroupError if another process is lost
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
