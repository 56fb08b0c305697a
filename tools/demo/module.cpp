// The second step of the demo, on C++'s side: loads the checkpoint of module.py into a class with
// other names and packed weights, and compares what both compute.
//   posenc-demo-module BLOCK.pt SAMPLE.safetensors

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <posenc/weights/error.h>
#include <posenc/weights/load.h>
#include <posenc/weights/safetensors.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/version.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>

namespace {

constexpr int64_t kHeads = 4;

// The Block of module.py, as another author might have written it: query, key and value are one
// matrix.
struct Block : torch::nn::Module {
  explicit Block(int64_t width) {
    in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
    in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * width}));
    const auto norm_options = torch::nn::LayerNormOptions({width});
    norm1 = register_module("norm1", torch::nn::LayerNorm(norm_options));
    norm2 = register_module("norm2", torch::nn::LayerNorm(norm_options));
    out_proj = register_module("out_proj", torch::nn::Linear(width, width));
    linear1 = register_module("linear1", torch::nn::Linear(width, 4 * width));
    linear2 = register_module("linear2", torch::nn::Linear(4 * width, width));
  }

  // Bits equal to Python's take the same operations: three products, and at::linear, since
  // torch::nn::Linear adds the bias to a rounded product.
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = norm1(x);
    const auto weights = in_proj_weight.chunk(3), biases = in_proj_bias.chunk(3);
    const auto heads = [&](std::size_t i) {
      return at::linear(y, weights[i], biases[i]).unflatten(2, {kHeads, -1}).transpose(1, 2);
    };
    const auto apply = [](const torch::nn::Linear& layer, const torch::Tensor& input) {
      return at::linear(input, layer->weight, layer->bias);
    };
    const auto mixed = at::scaled_dot_product_attention(heads(0), heads(1), heads(2));
    const auto z = x + apply(out_proj, mixed.transpose(1, 2).flatten(2));
    return z + apply(linear2, at::gelu(apply(linear1, norm2(z))));
  }

  torch::Tensor in_proj_weight, in_proj_bias;
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear out_proj{nullptr}, linear1{nullptr}, linear2{nullptr};
};

// clang-format off: the lines between the marks are printed by tools/demo/module.sh
// shown:
posenc::LoadReport load(torch::nn::Module& block, const std::string& path) {
  auto options = posenc::LoadOptions()
      .prefix("model_state_dict.")
      .key_map({{{"query.*", "key.*", "value.*"}, "in_proj_*"},
                {"merge.*", "out_proj.*"},
                {"before.*", "norm1.*"}, {"after.*", "norm2.*"},
                {"up.*", "linear1.*"}, {"down.*", "linear2.*"}});
  return posenc::load_weights(block, path, options);
}
// end
// clang-format on

// Why the file is refused; empty if it is not.
template <typename Load>
std::string refusal(const std::string& path, Load&& load_it) {
  try {
    load_it();
  } catch (const posenc::WeightsError& error) {
    return std::filesystem::path(path).filename().string() + " " + error.reason();
  }
  return {};
}

// Prints the beginning of a refusal in lines of at most 78 characters. Returns whether it is one.
bool show(const char* title, std::string text) {
  constexpr std::size_t kWidth = 70, kLines = 3;
  fmt::print("\n{}\n", title);
  if (text.empty()) {
    fmt::print("  It was loaded: that is wrong.\n");
    return false;
  }
  for (std::size_t line = 1; line <= kLines && !text.empty(); ++line) {
    std::size_t end = std::min(text.find('\n'), text.size());
    if (end > kWidth) end = text.rfind(' ', kWidth);
    if (end == std::string::npos || end == 0) end = kWidth;
    const bool cut = line == kLines && end + 1 < text.size();
    fmt::print("  {}{}\n", text.substr(0, end), cut ? " ..." : "");
    text.erase(0, end + 1);
  }
  return true;
}

int run(const std::string& path, const std::string& sample_path) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(1);
  auto sample = posenc::load_safetensors(sample_path);
  const auto x = sample.tensors["x"], expected = sample.tensors["y"];
  const int64_t width = x.size(2);
  // Another LibTorch than Python's may round in another way.
  const double bound = sample.metadata["torch"] == TORCH_VERSION ? 0.0 : 1e-5;

  Block block(width);
  const auto report = load(block, path);
  const auto y = block.forward(x);
  const auto largest = (y - expected).abs().max().item<double>();
  fmt::print("{} tensors loaded. {} of {} outputs differ; largest difference {:g}, allowed {:g}.\n",
             report.loaded.size(), y.ne(expected).sum().item<int64_t>(), y.numel(), largest, bound);

  Block narrow(width / 2);
  const bool refuses_width =
      show("Refused, a block of half the width:", refusal(path, [&] { load(narrow, path); }));
  const bool refuses_names =
      show("Refused, Python's names without the map:", refusal(path, [&] {
             posenc::load_weights(block, path, posenc::LoadOptions().prefix("model_state_dict."));
           }));
  return largest <= bound && refuses_width && refuses_names ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: posenc-demo-module BLOCK.pt SAMPLE.safetensors\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "posenc-demo-module: {}\n", error.what());
    return 1;
  }
}
