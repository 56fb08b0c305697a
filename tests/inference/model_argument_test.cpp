// Every function that takes a model accepts the module and its holder.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <type_traits>

#include "posenc/inference/freeze.h"
#include "posenc/positions/nn/token_embedding.h"
#include "posenc/train/checkpoint.h"
#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

// Other types do not convert, and a const module does not convert to a ModuleRef.
static_assert(std::is_convertible_v<torch::nn::Linear, ModuleRef>);
static_assert(std::is_convertible_v<torch::nn::LinearImpl&, ModuleRef>);
static_assert(std::is_convertible_v<const torch::nn::LinearImpl&, ConstModuleRef>);
static_assert(!std::is_convertible_v<const torch::nn::LinearImpl&, ModuleRef>);
static_assert(!std::is_convertible_v<torch::Tensor, ModuleRef>);

// `module` is passed to the functions; `*holder` is the module that it refers to.
template <typename Given>
void saves_and_loads(torch::nn::Linear& holder, Given& module) {
  const TempDir dir;
  const StateDict before = state_dict(module);
  EXPECT_EQ(before.keys(), state_dict(*holder).keys());
  save_weights(module, dir / "x.safetensors");
  const auto weight = holder->weight.detach().clone();
  const auto forget = [&] {
    const torch::NoGradGuard no_grad;
    holder->weight.zero_();
  };
  forget();
  EXPECT_EQ(load_weights(module, dir / "x.safetensors").loaded.size(), 2u);
  EXPECT_TRUE(bit_equal(holder->weight.detach(), weight));
  forget();
  EXPECT_EQ(load_state_dict(module, load_tensors(dir / "x.safetensors")).loaded.size(), 2u);
  EXPECT_TRUE(bit_equal(holder->weight.detach(), weight));
  torch::optim::SGD optimizer(holder->parameters(), 0.1);
  const TrainingRun run{module, &optimizer};
  save_checkpoint(dir / "c.safetensors", run);
  forget();
  load_checkpoint(dir / "c.safetensors", run);
  EXPECT_TRUE(bit_equal(holder->weight.detach(), weight));
}

TEST(ModelArgument, IsAModuleOrAHolderOfOne) {
  torch::nn::Linear linear(3, 2);
  saves_and_loads(linear, linear);
  saves_and_loads(linear, *linear);
  const torch::nn::Linear& constant = linear;
  saves_and_loads(linear, constant);
  const auto own = TokenEmbedding(5, 4);  // its holder is a class derived from ModuleHolder
  EXPECT_EQ(state_dict(own).keys(), state_dict(*own).keys());
}

TEST(ModelArgument, GenerateAndFreezeTakeEither) {
  const Transformer model = tiny_model();
  auto& module = *model.ptr();
  const auto src = torch::tensor({{3, 4, 5}, {6, 7, 8}});
  const auto options = GenerateOptions(1, 2).max_new_tokens(5);
  const auto tokens = [](const std::vector<std::vector<Hypothesis>>& found) {
    std::vector<std::vector<int64_t>> all;
    for (const auto& of_source : found) all.push_back(of_source.at(0).tokens);
    return all;
  };
  const auto expected = tokens(generate(module, src, {}, options));
  EXPECT_EQ(tokens(generate(model, src, {}, options)), expected);
  EXPECT_EQ(tokens(generate(freeze(model), src, {}, options)), expected);
  EXPECT_EQ(tokens(generate(freeze(module), src, {}, options)), expected);

  const auto x = torch::randn({2, 3, 8});
  const TransformerEncoder& encoder = module.encoder;
  EXPECT_TRUE(bit_equal(freeze(*encoder).forward(x), freeze(encoder).forward(x)));
  TransformerEncoderImpl local(encoder->options);  // no holder's
  const auto frozen = freeze(local);
  EXPECT_EQ(frozen.forward(x).sizes(), x.sizes());
  const torch::NoGradGuard no_grad;
  local.parameters()[0].add_(1.0);
  EXPECT_THROW(frozen.forward(x), c10::Error) << "a change is found in it as well";
}

TEST(ModelArgument, RejectsEmptyHolders) {
  const torch::nn::Linear none(nullptr);
  EXPECT_THROW(state_dict(none), c10::Error);
  EXPECT_ERROR(
      generate(Transformer(nullptr), torch::zeros({1, 2}, torch::kLong), {}, GenerateOptions(1, 2)),
      c10::ValueError, "[generate] the model must not be an empty holder");
}

}  // namespace
}  // namespace posenc::testing
