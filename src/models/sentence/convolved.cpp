#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>

#include "models/sentence/stage_module.h"

namespace posenc {
namespace {

struct ConvolutionSize {
  int64_t kernel, stride, padding;

  /// The fewest rows that it takes.
  int64_t least() const { return kernel - 2 * padding; }
};

ConvolutionSize size_of(const torch::nn::Conv1dImpl& convolution) {
  const int64_t kernel = convolution.weight.size(2);
  return {kernel, (*convolution.options.stride())[0], (kernel - 1) / 2};
}

// The rows that sequences of these lengths become; none of a sequence without tokens.
at::Tensor rows_after(const ConvolutionSize& size, const at::Tensor& lengths, std::size_t number) {
  const bool are_long = lengths.ge(size.least()).logical_or(lengths.eq(0)).all().item<bool>();
  TORCH_CHECK_VALUE(are_long, "[SentenceStages] stage ", number,
                    ", CNN: each sequence must have at least ", size.least(), " tokens. Got ",
                    lengths.min().item<int64_t>());
  const at::Tensor last =
      (lengths - size.least()).div(size.stride, /*rounding_mode=*/"floor");  // from 0
  return at::where(lengths.eq(0), 0, last + 1);
}

// Moves the real tokens of each sequence to its beginning, and makes the others zeros.
ConvolvedTokens aligned(const ConvolvedTokens& given, const at::Tensor& is_token) {
  const at::Tensor order = is_token.to(at::kByte).argsort(/*stable=*/true, 1, /*descending=*/true);
  const at::Tensor indices = order.unsqueeze(-1).expand_as(given.tokens);
  ConvolvedTokens out = given;
  out.tokens = at::where(is_token.unsqueeze(-1), given.tokens, 0).gather(1, indices);
  if (given.ids.defined()) out.ids = given.ids.gather(1, order);
  return out;
}

}  // namespace

ConvolvedTokens convolved(const torch::nn::ModuleListImpl& convs, const ConvolvedTokens& given,
                          std::size_t number) {
  const bool has_mask = given.mask.defined();
  const at::Tensor is_token = has_mask ? given.mask.ne(0) : at::Tensor();
  ConvolvedTokens out = has_mask ? aligned(given, is_token) : given;
  const at::Tensor lengths = has_mask ? is_token.sum(1)
                                      : at::full({given.tokens.size(0)}, given.tokens.size(1),
                                                 given.tokens.options().dtype(at::kLong));
  std::vector<at::Tensor> channels;
  at::Tensor rows;
  for (const auto& item : convs) {
    auto& convolution = *item->as<torch::nn::Conv1dImpl>();
    const ConvolutionSize size = size_of(convolution);
    const at::Tensor own = rows_after(size, lengths, number);
    TORCH_CHECK_VALUE(!rows.defined() || rows.equal(own), "[SentenceStages] stage ", number,
                      ", CNN: all convolutions must give the same number of rows. Got a kernel of ",
                      size.kernel, " with a stride of ", size.stride, " beside others");
    rows = own;
    const int64_t missing = std::max<int64_t>(size.least() - out.tokens.size(1), 0);
    const at::Tensor x = at::constant_pad_nd(out.tokens, {0, 0, 0, missing}).transpose(1, 2);
    channels.push_back(convolution.forward(x));
  }
  out.tokens = at::cat(channels, 1).transpose(1, 2);
  if (has_mask) {
    out.mask = at::arange(out.tokens.size(1), rows.options()).lt(rows.unsqueeze(1));
  }
  return out;
}

}  // namespace posenc
