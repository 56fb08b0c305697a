#include "tagger.h"

constexpr int64_t kVocab = 50, kWidth = 16, kLabels = 5;

TaggerImpl::TaggerImpl() {
  embed_ = register_module("embed", torch::nn::Embedding(kVocab, kWidth));
  attention_ = register_module("attention", posenc::MultiheadAttention(kWidth, /*num_heads=*/4));
  out_ = register_module("out", torch::nn::Linear(kWidth, kLabels));
}

torch::Tensor TaggerImpl::forward(const torch::Tensor& ids, const torch::Tensor& mask) {
  const torch::Tensor x = embed_(ids);
  const auto allowed = posenc::AttentionMask::key_padding(mask);
  return out_(x + attention_->forward(x, x, x, allowed));
}

posenc::KeyMap tagger_keys() {
  return {{{"attn.q.*", "attn.k.*", "attn.v.*"}, "attention.in_proj_*"},  // three into one
          {"attn.o.*", "attention.out_proj.*"}};                          // others are the same
}
