#pragma once

// The options of LibTorch's modules in the stacks that can be frozen.

#include <torch/nn/options/batchnorm.h>
#include <torch/nn/options/conv.h>
#include <torch/nn/options/embedding.h>

#include "posenc/core/fields.h"

template <std::size_t D>
struct posenc::fields::List<torch::ExpandingArray<D>> {
  template <typename Visit>
  static void visit(const torch::ExpandingArray<D>& values, Visit&& visit) {
    visit("values", *values);
  }
};
template <std::size_t D>
struct posenc::fields::List<torch::nn::detail::ConvNdOptions<D>> {
  template <typename Visit>
  static void visit(const torch::nn::detail::ConvNdOptions<D>& o, Visit&& visit) {
    visit(
        "in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, "
        "output_padding, groups, bias, padding_mode",
        o.in_channels(), o.out_channels(), o.kernel_size(), o.stride(), o.padding(), o.dilation(),
        o.transposed(), o.output_padding(), o.groups(), o.bias(), o.padding_mode());
  }
};
// Without what training reads: momentum.
template <>
struct posenc::fields::List<torch::nn::BatchNormOptions> {
  template <typename Visit>
  static void visit(const torch::nn::BatchNormOptions& o, Visit&& visit) {
    visit("num_features, eps, affine, track_running_stats", o.num_features(), o.eps(), o.affine(),
          o.track_running_stats());
  }
};
template <>
struct posenc::fields::List<torch::nn::EmbeddingOptions> {
  template <typename Visit>
  static void visit(const torch::nn::EmbeddingOptions& o, Visit&& visit) {
    visit(
        "num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, "
        "sparse",
        o.num_embeddings(), o.embedding_dim(), o.padding_idx(), o.max_norm(), o.norm_type(),
        o.scale_grad_by_freq(), o.sparse());
  }
};
