// The complete messages of loads that fail, as a person reads them.
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Names = std::vector<std::string>;

class Message : public ::testing::Test {
 protected:
  // Saves these names, each with a tensor of shape (2), and returns the error of loading them into
  // a module that has the names `expected`.
  WeightsError error(const Names& expected, const Names& given, const LoadOptions& options = {}) {
    StateDict tensors;
    for (const auto& name : given) tensors.insert(name, at::ones({2}));
    save_tensors(dir_ / "c.pt", tensors);
    auto module = module_of(expected);
    return error_of([&] { load_weights(*module, dir_ / "c.pt", options); });
  }
  // The same as text, without the folder.
  std::string message(const Names& expected, const Names& given, const LoadOptions& options = {}) {
    const std::string text = error(expected, given, options).what(), folder = dir_ / "";
    const std::string start = "[load_weights] " + folder;
    EXPECT_EQ(text.substr(0, start.size()), start);
    return text.substr(start.size());
  }
  static std::shared_ptr<torch::nn::Module> module_of(const Names& names) {
    auto module = std::make_shared<torch::nn::Module>();
    for (const auto& name : names) {
      auto at = module;
      std::string rest = name;
      for (auto dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
        const auto part = rest.substr(0, dot);
        const auto children = at->named_children();
        const auto* child = children.find(part);
        at = child ? *child : at->register_module(part, std::make_shared<torch::nn::Module>());
        rest = rest.substr(dot + 1);
      }
      at->register_buffer(rest, at::zeros({2}));
    }
    return module;
  }
  static Names layers(const std::string& prefix, int count) {
    Names names;
    for (int i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i) + ".weight");
    return names;
  }

  TempDir dir_;
};

TEST_F(Message, BeginsWithThePrefixOfACheckpoint) {
  EXPECT_EQ(message({"weight", "bias"}, {"model_state_dict.weight", "model_state_dict.bias"}),
            "c.pt: all names begin with `model_state_dict.`: "
            "LoadOptions().prefix(\"model_state_dict.\")\n"
            "  the module is left as it was\n"
            "  missing (2):\n"
            "    'weight'\n"
            "    'bias'\n"
            "  unexpected (2):\n"
            "    'model_state_dict.weight'\n"
            "    'model_state_dict.bias'");
  for (const std::string prefix : {"model.", "state_dict.model.", "module."}) {
    const auto found = error({"weight", "bias"}, {prefix + "weight", prefix + "bias"});
    EXPECT_EQ(found.remedy(), "LoadOptions().prefix(\"" + prefix + "\")");
    EXPECT_EQ(found.code(), WeightsErrorCode::MissingKeys);
  }
}

TEST_F(Message, SaysWhatIsBesideTheWeightsOfACheckpoint) {
  const auto text = message({"weight"}, {"model.weight", "optimizer.state.0.exp_avg"});
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "c.pt: all missing names are there below `model.`: LoadOptions().prefix(\"model.\")");
  const auto partial = message({"head", "a", "b", "c"}, {"net.a", "net.b", "net.c"});
  EXPECT_EQ(
      partial.substr(0, partial.find('\n')),
      "c.pt: 3 of the 4 missing names are there below `net.`: LoadOptions().prefix(\"net.\")");
}

TEST_F(Message, AdvisesNoPrefixThatWouldLoseNames) {
  const Names given = {"0.weight", "0.bias", "m.1.weight", "m.1.bias"};
  const Names expected = {"0.weight", "0.bias", "1.weight", "1.bias"};
  EXPECT_EQ(error(expected, given).remedy(), "LoadOptions().key_map({{\"m.*\", \"*\"}})");
  const auto module = module_of(expected);
  load_weights(*module, dir_ / "c.pt", LoadOptions().key_map({{"m.*", "*"}}));
}

TEST_F(Message, LeavesTheChoiceBetweenPrefixesToTheUser) {
  const auto text = message({"weight", "bias"}, {"a.weight", "a.bias", "z.weight", "z.bias"});
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "c.pt: all missing names are there below `a.` and below `z.`: choose one; "
            "LoadOptions().prefix() selects it");
}

TEST_F(Message, BeginsWithThePrefixThatTheFileLacks) {
  const Names expected = {"module.weight", "module.bias"}, given = {"weight", "bias"};
  const auto text = message(expected, given);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "c.pt: all names of the module begin with `module.`, without which they are there: "
            "LoadOptions().key_map({{\"*\", \"module.*\"}})");
  const auto module = module_of(expected);
  load_weights(*module, dir_ / "c.pt", LoadOptions().key_map({{"*", "module.*"}}));
}

TEST_F(Message, BeginsWithAPrefixThatSelectsNothing) {
  EXPECT_EQ(message({"weight"}, {"weight"}, LoadOptions().prefix("net.")),
            "c.pt: no name begins with 'net.'; a prefix is given with its dot\n"
            "  the module is left as it was\n"
            "  missing (1):\n"
            "    'weight'");
}

TEST_F(Message, NamesAPrefixWithItsDot) {
  const auto text = message({"weight"}, {"model.weight"}, LoadOptions().prefix("model"));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "c.pt: all names begin with `model.`: LoadOptions().prefix(\"model.\")");
}

TEST_F(Message, SaysWhenTheWeightsAreOfAnotherClass) {
  auto given = layers("transformer.h.", 12);
  auto expected = layers("encoder.block.", 11);
  given.push_back("shared");
  expected.push_back("shared");
  const auto text = message(expected, given);
  EXPECT_EQ(text.substr(0, text.find("\n    'encoder.block.1")),
            "c.pt: looks like the weights of another class: 1 of the module's 12 names are among "
            "its 13; if only the names differ, LoadOptions().key_map() renames them\n"
            "  the module is left as it was\n"
            "  missing (11):\n"
            "    'encoder.block.0.weight'");
}

TEST_F(Message, ListsTenNamesALineAndCountsTheRest) {
  const auto found = error(layers("layers.", 32), {});
  std::string expected = "does not fit the module, which is left as it was\n  missing (32):";
  for (int i = 0; i < 10; ++i) expected += "\n    'layers." + std::to_string(i) + ".weight'";
  EXPECT_EQ(found.reason(), expected + "\n    and 22 more");
  EXPECT_EQ(found.details().missing, layers("layers.", 32));
  EXPECT_EQ(found.details().unexpected, Names{});
  EXPECT_EQ(found.details().mismatched, Names{});
}

TEST_F(Message, SuggestsOnlyWhatIsSimilar) {
  EXPECT_EQ(message({"inner.bias", "weight"}, {"inner.bais", "kernel"}),
            "c.pt: does not fit the module, which is left as it was\n"
            "  missing (2):\n"
            "    'weight'\n"
            "    'inner.bias' (did you mean 'inner.bais'?)\n"
            "  unexpected (2):\n"
            "    'inner.bais' (did you mean 'inner.bias'?)\n"
            "    'kernel'");
}

TEST_F(Message, ListsShapesAndDtypesTheSameWay) {
  StateDict tensors;
  auto module = std::make_shared<torch::nn::Module>();
  for (int i = 0; i < 12; ++i) {
    module->register_buffer("s" + std::to_string(i), at::zeros({2}));
    tensors.insert("s" + std::to_string(i), at::zeros({3}));
  }
  module->register_buffer("d", at::zeros({2}));
  tensors.insert("d", at::zeros({2}, at::kDouble));
  const auto found = error_of([&] { load_state_dict(*module, tensors); });
  std::string expected =
      "[load_state_dict] the state dict does not fit the module, which is left as it was; "
      "LoadOptions().cast(true) converts dtypes\n  shape (12):";
  for (int i = 0; i < 10; ++i) {
    expected += "\n    's" + std::to_string(i) + "' must have shape (2). Got (3)";
  }
  expected += "\n    and 2 more\n  dtype (1):\n    'd' must have dtype float32. Got float64";
  EXPECT_EQ(std::string(found.what()), expected);
  ASSERT_EQ(found.details().mismatched.size(), 13u);
  EXPECT_EQ(found.details().mismatched[11], "'s11' must have shape (2). Got (3)");
}

// Code that knows LibTorch's errors only catches these too, and gets no backtrace.
TEST_F(Message, IsAnErrorOfLibTorch) {
  torch::nn::Linear linear(2, 2);
  try {
    load_weights(*linear, dir_ / "none.pt");
    FAIL() << "nothing was thrown";
  } catch (const c10::Error& error) {
    EXPECT_CONTAINS(error.what(), "none.pt: cannot be opened: No such file");
    EXPECT_STREQ(error.what(), error.what_without_backtrace());
  }
}

}  // namespace
}  // namespace posenc::testing
