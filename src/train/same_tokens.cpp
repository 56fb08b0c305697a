#include "train/same_tokens.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/token_embedding.h"

namespace posenc::train {
namespace {

template <typename Impl>
bool embeds_same_tokens(const torch::nn::Module& module) {
  const auto* const embedding = dynamic_cast<const Impl*>(&module);
  return embedding != nullptr && embedding->options.group().size() > 1 &&
         embedding->options.rank_tokens() == RankTokens::Same;
}

}  // namespace

bool expects_same_tokens(const torch::nn::Module& module) {
  if (embeds_same_tokens<TokenEmbeddingImpl>(module) ||
      embeds_same_tokens<TokenAndPositionEmbeddingImpl>(module))
    return true;
  const auto children = module.named_children();
  return std::any_of(children.begin(), children.end(),
                     [](const auto& child) { return expects_same_tokens(*child.value()); });
}

}  // namespace posenc::train
