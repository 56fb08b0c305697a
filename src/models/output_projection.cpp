#include "posenc/models/output_projection.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>
#include <utility>

#include "core/check.h"
#include "nn/draw_shard.h"
#include "nn/print.h"
#include "posenc/core/skip_init.h"
#include "posenc/functional/vocab_parallel.h"

namespace posenc {

OutputProjectionImpl::OutputProjectionImpl(int64_t d_model, int64_t vocab_size, RankGroup group,
                                           RankTokens rank_tokens)
    : d_model_(d_model),
      vocab_size_(vocab_size),
      group_(std::move(group)),
      rank_tokens_(rank_tokens) {
  OutputProjectionImpl::reset();
}

void OutputProjectionImpl::reset() {
  check_positive("OutputProjection", "d_model", d_model_);
  check_positive("OutputProjection", "vocab_size", vocab_size_);
  const int64_t rows = shard_of(vocab_size_, group_).rows();
  if (!embedding_) weight = register_parameter("weight", torch::empty({rows, d_model_}));
  bias = register_parameter("bias", torch::empty({rows}));
  if (!SkipInit::is_active()) reset_parameters();
}

void OutputProjectionImpl::reset_parameters() {
  const VocabShard shard = shard_of(vocab_size_, group_);
  if (weight.defined()) {
    draw_shard(weight, shard, [](const torch::Tensor& block) {
      torch::nn::init::kaiming_uniform_(block, std::sqrt(5.0));
    });
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(d_model_));
  draw_shard(bias, shard, [bound](const torch::Tensor& block) {
    torch::nn::init::uniform_(block, -bound, bound);
  });
}

std::vector<ShardedName> OutputProjectionImpl::sharded_names() const {
  if (!group_) return {};
  const VocabShard shard = shard_of(vocab_size_, group_);
  std::vector<ShardedName> names = {{"bias", shard.first, vocab_size_}};
  if (weight.defined()) names.push_back({"weight", shard.first, vocab_size_});
  return names;
}

void OutputProjectionImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::OutputProjection(d_model=" << d_model_ << ", vocab_size=" << vocab_size_;
  if (embedding_) stream << ", tied";
  print(stream, group_, rank_tokens_);
  stream << ")";
}

torch::Tensor OutputProjectionImpl::forward(const torch::Tensor& x) {
  const torch::Tensor& own = effective_weight();
  if (group_.size() == 1 && rank_tokens_ == RankTokens::Same) return torch::linear(x, own, bias);
  return functional::vocab_parallel_output(x, own, bias, group_, rank_tokens_);
}

void OutputProjectionImpl::tie(const torch::nn::Embedding& embedding) {
  const int64_t rows = shard_of(vocab_size_, group_).rows();
  TORCH_CHECK_VALUE(embedding->weight.size(0) == rows && embedding->weight.size(1) == d_model_,
                    "[OutputProjection] the embedding must be (", rows, ", ", d_model_, "). Got ",
                    embedding->weight.sizes());
  embedding_ = embedding;
  if (!weight.defined()) return;
  weight = torch::Tensor();
  parameters_.erase("weight");
}

}  // namespace posenc
