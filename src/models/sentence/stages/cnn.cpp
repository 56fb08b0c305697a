#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>

#include "core/check.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"
#include "positions/nn/convolution.h"

namespace posenc::stages {
namespace {

using sentence::CNN;

class CNNModule : public Cloneable<CNNModule>, public StageModule {
 public:
  explicit CNNModule(CNN stage) : stage_(std::move(stage)) { CNNModule::reset(); }

  void reset() override {
    torch::nn::ModuleList convolutions;
    for (std::size_t i = 0; i < stage_.kernel_sizes.size(); ++i) {
      const int64_t kernel = stage_.kernel_sizes[i];
      convolutions->push_back(make_convolution(
          torch::nn::Conv1dOptions(stage_.in_embedding_dimension, stage_.out_channels, kernel)
              .stride(stage_.stride_sizes.empty() ? 1 : stage_.stride_sizes[i])
              .padding((kernel - 1) / 2)));
    }
    convs = register_module("convs", convolutions);
  }
  void reset_parameters() override {
    for (const auto& item : *convs) item->as<torch::nn::Conv1dImpl>()->reset_parameters();
  }

  torch::nn::ModuleList convs{nullptr};

 private:
  CNN stage_;
};

std::vector<int64_t> sizes_in(const Settings& config, const char* name,
                              const std::vector<int64_t>& default_sizes) {
  const std::vector<int64_t> sizes = config.integers_if(name).value_or(default_sizes);
  for (const int64_t size : sizes) {
    if (size < 1 || size > kWidest) config.refuse(name, "must be positive numbers");
  }
  return sizes;
}

sentence::Stage read_cnn(const Settings& config) {
  const char* const older = "in_word_embedding_dimension";
  const char* const newer = "in_embedding_dimension";
  CNN stage = {config.integer(config.has(newer) ? newer : older, 1, kWidest)};
  stage.out_channels = config.integer("out_channels", stage.out_channels, 1, kWidest);
  stage.kernel_sizes = sizes_in(config, "kernel_sizes", stage.kernel_sizes);
  stage.stride_sizes = sizes_in(config, "stride_sizes", {});
  return stage;
}

void follow_cnn(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const auto& stage = std::get<CNN>(any);
  check_positive("SentenceStages", "out_channels", stage.out_channels);
  widths.check_width(sentence::Feature::Tokens, place, "in_embedding_dimension",
                     stage.in_embedding_dimension);
  const std::size_t convolutions = stage.kernel_sizes.size(), strides = stage.stride_sizes.size();
  TORCH_CHECK_VALUE(convolutions > 0, place, ", must have a kernel size, which it has not");
  TORCH_CHECK_VALUE(strides == 0 || strides == convolutions, place,
                    ": stride_sizes must be as many as kernel_sizes, ", convolutions, ". Got ",
                    strides);
  for (const int64_t size : stage.kernel_sizes)
    check_positive("SentenceStages", "each of kernel_sizes", size);
  for (const int64_t size : stage.stride_sizes)
    check_positive("SentenceStages", "each of stride_sizes", size);
  widths.tokens = stage.out_channels * static_cast<int64_t>(convolutions);
}

// Tokens (B, L, D), which of them are real, and their ids; all but the tokens may be undefined.
struct ConvolvedTokens {
  at::Tensor tokens, mask, ids;
};

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
at::Tensor rows_after(const ConvolutionSize& size, const at::Tensor& lengths,
                      const StagePlace& place) {
  const bool are_long = lengths.ge(size.least()).logical_or(lengths.eq(0)).all().item<bool>();
  TORCH_CHECK_VALUE(are_long, place, ": each sequence must have at least ", size.least(),
                    " tokens. Got ", lengths.min().item<int64_t>());
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

// The tokens after the convolutions. Those of each sequence are moved to its beginning and followed
// by zeros, as its padding would be, and the mask is of what they become. Throws c10::ValueError
// for sequences that are shorter than a kernel and for convolutions that give different numbers of
// rows.
ConvolvedTokens convolved(const torch::nn::ModuleListImpl& convs, const ConvolvedTokens& given,
                          const StagePlace& place) {
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
    const at::Tensor own = rows_after(size, lengths, place);
    TORCH_CHECK_VALUE(!rows.defined() || rows.equal(own), place,
                      ": all convolutions must give the same number of rows. Got a kernel of ",
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

void run_cnn(const sentence::Stage&, const StageRun& run) {
  StageFeatures& features = run.features;
  const ConvolvedTokens out = convolved(*run.module->as<CNNModule>()->convs,
                                        {features.tokens, features.mask, features.ids}, run.place);
  features.tokens = out.tokens;
  features.mask = out.mask;
  features.ids = out.ids;
}

std::shared_ptr<torch::nn::Module> make_cnn(const sentence::Stage& any) {
  return std::make_shared<CNNModule>(std::get<CNN>(any));
}

}  // namespace

const StageKind kCNN = {.name = "CNN",
                        .read = read_cnn,
                        .follow = follow_cnn,
                        .run = run_cnn,
                        .make = make_cnn,
                        .file = "cnn_config.json"};

}  // namespace posenc::stages
