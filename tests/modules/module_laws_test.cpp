// Laws for all modules: keys, shapes, clone, to, save and load, the default dtype, SkipInit,
// printing, Sequential. Each module is a row in kModules (module_kinds.h); a new module only adds a
// row.

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <sstream>

#include "modules/module_kinds.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/sentence_stages.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/default_dtype.h"
#include "support/devices.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Kind;
using testing::kModules;

class Module : public ::testing::TestWithParam<Kind> {
 protected:
  std::shared_ptr<torch::nn::Module> make() const {
    auto module = GetParam().make();
    module->eval();
    return module;
  }
  torch::Tensor run(torch::nn::Module& module) const {
    return GetParam().run(module, torch::tensor({{1, 6, 0}, {3, 3, 2}}).to(device_of(module)));
  }
  static torch::Device device_of(const torch::nn::Module& module) {
    const auto state = state_dict(module);
    return state.is_empty() ? torch::Device(torch::kCPU) : state[0].value().device();
  }
  // Stores nothing: device and dtype are the input's.
  static bool stateless() { return GetParam().keys.empty(); }
  static std::string keys(const torch::nn::Module& module) {
    std::string joined;
    for (const auto& item : state_dict(module)) joined += (joined.empty() ? "" : " ") + item.key();
    return joined;
  }
  static std::string frozen(const torch::nn::Module& module) {
    std::string joined;
    for (const auto& item : module.named_parameters()) {
      if (!item.value().requires_grad()) joined += (joined.empty() ? "" : " ") + item.key();
    }
    return joined;
  }
};

INSTANTIATE_TEST_SUITE_P(Each, Module, ::testing::ValuesIn(kModules),
                         [](const auto& info) { return info.param.name; });

TEST_P(Module, KeysAreTheWireFormat) {
  EXPECT_EQ(keys(*make()), GetParam().keys);
  EXPECT_EQ(frozen(*make()), GetParam().frozen);
}

TEST_P(Module, PrintsItsOptions) {
  std::ostringstream text;
  text << *make();
  EXPECT_EQ(text.str().rfind(GetParam().print, 0), 0u) << text.str();
}

TEST_P(Module, CloneIsEqualIndependentAndAsFrozen) {
  auto module = make();
  const auto before = run(*module).clone();
  auto copy = module->clone();
  EXPECT_EQ(frozen(*copy), GetParam().frozen);
  EXPECT_EQ(keys(*copy), GetParam().keys);
  copy->eval();
  EXPECT_TRUE(bit_equal(run(*copy), before));
  {
    torch::NoGradGuard no_grad;
    for (const auto& item : state_dict(*copy)) item.value().add_(1.0);
  }
  EXPECT_TRUE(bit_equal(run(*module), before));
  EXPECT_EQ(bit_equal(run(*copy), before), stateless());
  EXPECT_EQ(frozen(*module->clone()->clone()), GetParam().frozen);
}

TEST_P(Module, GoesToEachDeviceAndBack) {
  for (const auto& device : testing::devices()) {
    auto module = make();
    const auto before = run(*module).clone();
    module->to(device);
    EXPECT_EQ(run(*module).device(), stateless() ? torch::Device(torch::kCPU) : device);
    auto there = module->clone(device);
    there->eval();
    EXPECT_TRUE(bit_equal(run(*there), run(*module)));
    module->to(torch::kCPU);
    EXPECT_TRUE(bit_equal(run(*module), before));
    EXPECT_EQ(frozen(*module), GetParam().frozen);
  }
}

TEST_P(Module, RunsInEveryFloatingType) {
  for (const auto dtype : {torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    auto module = make();
    module->to(dtype);
    EXPECT_EQ(run(*module).scalar_type(), stateless() ? torch::kFloat : dtype);
    EXPECT_EQ(frozen(*module), GetParam().frozen);
  }
}

TEST_P(Module, SavesAndLoadsThroughTorchArchives) {
  auto module = make();
  std::stringstream archive;
  torch::serialize::OutputArchive out;
  module->save(out);
  out.save_to(archive);
  auto other = make();
  torch::serialize::InputArchive in;
  in.load_from(archive);
  other->load(in);
  EXPECT_TRUE(bit_equal(run(*other), run(*module)));
  EXPECT_EQ(frozen(*other), GetParam().frozen);
}

TEST_P(Module, SavesAndLoadsThroughPlainKeys) {
  auto module = make();
  auto other = make();
  const auto report = load_state_dict(*other, state_dict(*module));
  EXPECT_EQ(report.loaded.size(), state_dict(*module).size());
  EXPECT_TRUE(bit_equal(run(*other), run(*module)));
  EXPECT_EQ(frozen(*other), GetParam().frozen);
}

// For tables as well as weights. What does not depend on the seed is a table or a constant: it must
// equal the converted one, except for the float64 tables of notebook 02, which are also computed in
// float64.
TEST_P(Module, FollowsTheDefaultDtype) {
  for (const auto dtype : {torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    SCOPED_TRACE(dtype);
    std::shared_ptr<torch::nn::Module> made, again;
    {
      const testing::DefaultDtype guard(dtype);
      made = make();
      again = make();
      EXPECT_EQ(run(*made).scalar_type(), stateless() ? torch::kFloat : dtype);
      auto copy = made->clone();
      copy->eval();
      EXPECT_TRUE(bit_equal(run(*copy), run(*made)));
    }
    auto converted = make();
    converted->to(dtype);
    const auto own = state_dict(*made), other = state_dict(*again);
    for (const auto& item : state_dict(*converted)) {
      const auto& key = item.key();
      ASSERT_EQ(own[key].scalar_type(), dtype) << key;
      const bool in_double = dtype == torch::kDouble && GetParam().frozen == key;
      if (!in_double && bit_equal(own[key], other[key])) {
        EXPECT_TRUE(bit_equal(own[key], item.value())) << key;
      }
    }
    load_state_dict(*converted, own);
    EXPECT_TRUE(bit_equal(run(*converted), run(*made)));
    EXPECT_EQ(frozen(*made), GetParam().frozen);
  }
}

TEST_P(Module, DrawsNothingUnderSkipInit) {
  const auto state = [] { return at::detail::getDefaultCPUGenerator().get_state(); };
  const auto before = state();
  std::shared_ptr<torch::nn::Module> skipped;
  {
    const SkipInit skip;
    skipped = make();
  }
  EXPECT_TRUE(bit_equal(state(), before));
  EXPECT_EQ(keys(*skipped), GetParam().keys);
  EXPECT_EQ(frozen(*skipped), GetParam().frozen);
  auto module = make();
  load_state_dict(*skipped, state_dict(*module));
  EXPECT_TRUE(bit_equal(run(*skipped), run(*module)));
}

// Its stages wait for a device, so it is no row.
TEST(SentenceStages, DrawNothingUnderSkipInit) {
  const auto make = [] {
    return std::make_shared<SentenceStagesImpl>(SentenceStagesOptions(8).stages(
        {sentence::CNN{.in_embedding_dimension = 8, .out_channels = 3, .kernel_sizes = {1, 3}},
         sentence::Pooling{}}));
  };
  const auto state = [] { return at::detail::getDefaultCPUGenerator().get_state(); };
  const auto before = state();
  std::shared_ptr<SentenceStagesImpl> skipped;
  {
    const SkipInit skip;
    skipped = make();
  }
  EXPECT_TRUE(bit_equal(state(), before));
  const auto module = make();
  load_state_dict(*skipped, state_dict(*module));
  const auto hidden = torch::randn({2, 5, 8});
  EXPECT_TRUE(bit_equal(skipped->forward(hidden), module->forward(hidden)));
}

TEST(Sequential, KeepsDefaultArguments) {
  torch::nn::Sequential model(TokenEmbedding(9, 6), PositionalEncoding(6, 8));
  EXPECT_EQ(model->forward(torch::tensor({{1, 2, 3}})).sizes(), (std::vector<int64_t>{1, 3, 6}));
  torch::nn::Sequential whole(InputEmbedding(9, 6, 8));
  EXPECT_EQ(whole->forward(torch::tensor({{1, 2, 3}})).sizes(), (std::vector<int64_t>{1, 3, 6}));
  torch::nn::Sequential scaled(TokenAndPositionEmbedding(9, 6, 8));
  EXPECT_EQ(scaled->forward(torch::tensor({{1, 2, 3}})).sizes(), (std::vector<int64_t>{1, 3, 6}));
}

}  // namespace
}  // namespace posenc
