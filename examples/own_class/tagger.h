// A class of one's own: the C++ counterpart of the class in make_golden.py.
#pragma once

#include <posenc/transformer/attention/multihead_attention.h>
#include <posenc/transformer/functional/attention_mask.h>
#include <posenc/weights/key_map.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

/// Labels each token of a sentence.
class TaggerImpl : public torch::nn::Module {
 public:
  TaggerImpl();

  /// ids, mask (B, L), the mask true for tokens and false for padding  ->  logits (B, L, labels).
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& mask);

 private:
  torch::nn::Embedding embed_{nullptr};
  posenc::MultiheadAttention attention_{nullptr};
  torch::nn::Linear out_{nullptr};
};

TORCH_MODULE(Tagger);

/// From the names in Python's state_dict to those of this class.
posenc::KeyMap tagger_keys();
