// Golden: what its messages say, and what is wrong with a file that is none of save_golden().

#include "posenc/weights/golden.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cmath>
#include <sstream>

#include "support/compare.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

// Two outputs and two inputs, of which the second has integers.
struct Scorer : torch::nn::Module {
  torch::nn::Linear out{register_module("out", torch::nn::Linear(4, 4))};
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x,
                                                   const torch::Tensor& at) {
    const auto scores = out(x);
    return {scores, scores.index_select(0, at)};
  }
};

const std::map<std::string, std::string> kMetadata = {{"golden", "1"},
                                                      {"module", "Scorer"},
                                                      {"torch", "2.13.0"},
                                                      {"inputs", "x\nat"},
                                                      {"outputs", "scores\npicked"}};

// As save_golden() writes it: in the order of the names.
SafetensorsFile scored() {
  torch::manual_seed(1);
  Scorer module;
  auto x = torch::randn({3, 4}).requires_grad_();
  const auto at = torch::tensor({2, 0});
  const auto [scores, picked] = module.forward(x, at);
  const auto of_scores = torch::randn_like(scores), of_picked = torch::randn_like(picked);
  ((scores * of_scores).sum() + (picked * of_picked).sum()).backward();
  StateDict tensors;
  tensors.insert("cotangent.picked", of_picked);
  tensors.insert("cotangent.scores", of_scores);
  tensors.insert("grad.in.x", x.grad());
  tensors.insert("grad.param.out.bias", module.out->bias.grad());
  tensors.insert("grad.param.out.weight", module.out->weight.grad());
  tensors.insert("in.at", at);
  tensors.insert("in.x", x.detach());
  tensors.insert("out.picked", picked.detach());
  tensors.insert("out.scores", scores.detach());
  tensors.insert("param.out.bias", module.out->bias.detach());
  tensors.insert("param.out.weight", module.out->weight.detach());
  return {tensors, kMetadata};
}

// That file with another tensor, or without it.
SafetensorsFile changed(const std::string& name, const at::Tensor& value) {
  SafetensorsFile file;
  for (const auto& item : scored().tensors) {
    if (item.key() != name) file.tensors.insert(item.key(), at::Tensor(item.value()));
  }
  if (value.defined()) file.tensors.insert(name, at::Tensor(value));
  file.metadata = kMetadata;
  return file;
}

std::string golden_error(const SafetensorsFile& file) {
  return refusal([&] { Golden golden("a.safetensors", file); });
}

TEST(Golden, AgreesWithItsOwnModule) {
  Golden golden("a.safetensors", scored());
  EXPECT_EQ(golden.inputs().keys(), (std::vector<std::string>{"x", "at"})) << "as in Python";
  EXPECT_EQ(golden.outputs().keys(), (std::vector<std::string>{"scores", "picked"}));
  EXPECT_EQ(golden.metadata().at("module"), "Scorer");
  Scorer module;
  EXPECT_EQ(golden.load_into(module).loaded.size(), 2u);
  const auto outputs = module.forward(golden.input("x"), golden.input("at"));
  const auto report = golden.compare(outputs);
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_EQ(report.to_string(),
            "[Golden] a.safetensors (Scorer, torch 2.13.0): all agree\n"
            "  output 'scores': all 12 elements are equal\n"
            "  output 'picked': all 8 elements are equal");
  for (int time = 0; time < 2; ++time) {  // gradients of an earlier call are replaced
    const auto again = module.forward(golden.input("x"), golden.input("at"));
    const auto gradients = golden.compare_gradients(module, again);
    EXPECT_TRUE(gradients.ok()) << gradients;
    EXPECT_EQ(gradients.items.size(), 3u);
    EXPECT_TRUE(golden.compare_gradients(module, again).ok()) << "the graph is kept";
  }
}

TEST(Golden, TakesOutputsInOrderAndByName) {
  const Golden golden("a.safetensors", scored());
  const auto scores = golden.outputs()["scores"], picked = golden.outputs()["picked"];
  EXPECT_TRUE(golden.compare({scores, picked}).ok());
  EXPECT_TRUE(golden.compare(std::vector<torch::Tensor>{scores, picked}).ok());
  EXPECT_TRUE(golden.compare(std::tuple(scores, picked)).ok());
  EXPECT_TRUE(golden.compare(std::tuple(scores, std::tuple<at::Tensor>(picked))).ok())
      << "nn::LSTM";
  EXPECT_TRUE(golden.compare({{"picked", picked}, {"scores", scores}}).ok());
  EXPECT_ERROR(
      golden.compare(scores), c10::ValueError,
      "[Golden] a.safetensors: must be compared with 2 outputs, 'scores' and 'picked'. Got 1");
  EXPECT_ERROR(golden.compare({{"scores", scores}, {"logits", picked}}), c10::ValueError,
               "[Golden] a.safetensors: outputs must be 'scores' and 'picked'. Got 'logits'");
  EXPECT_ERROR(golden.input("y"), c10::ValueError,
               "[Golden] a.safetensors: input must be one of 'x' and 'at'. Got 'y'");
}

TEST(Golden, ReportNamesTheFactorAndPutsOtherShapesFirst) {
  const Golden golden("a.safetensors", scored());
  const auto scores = golden.outputs()["scores"], picked = golden.outputs()["picked"];
  std::ostringstream text;
  text << golden.compare({scores * 2, picked.t()});
  EXPECT_PRED_FORMAT2(
      ::testing::IsSubstring,
      "(Scorer, torch 2.13.0): 2 of 2 differ\n"
      "  output 'picked': another shape: got float32 (4, 2), expected float32 (2, 4)\n"
      "  output 'scores': 12 of 12 elements have other bits\n    worst at [",
      text.str());
  EXPECT_PRED_FORMAT2(
      ::testing::IsSubstring,
      "every element is the expected one times 2 = sqrt(4), from the last dimension", text.str());
}

// As shares of the largest number in each: 2e-3, 0.5, 0, and 1e-1 of a few small numbers.
TEST(Golden, ReportListsWhatDiffersByHowFarItIsOff) {
  SafetensorsFile file = changed("", {});
  std::string names = "scores\npicked\n";
  const auto add = [&](const std::string& name, const at::Tensor& value) {
    file.tensors.insert("out." + name, at::Tensor(value));
    names += name + "\n";
  };
  const auto base = torch::tensor({1000.0F, 500.0F});
  add("a_little", base), add("b_lot", base * 1e-3), add("c_equal", base), add("d_small", base);
  file.metadata["outputs"] = names;
  const Golden golden("a.safetensors", file);
  const auto scores = golden.outputs()["scores"], picked = golden.outputs()["picked"];
  const auto off = [&](double by) { return base + torch::tensor({0.0F, static_cast<float>(by)}); };
  const auto report =
      golden.compare({scores, picked, off(2.0), base * 1e-3 + 0.5, base, off(100.0)});
  const auto text = report.to_string();
  EXPECT_CONTAINS(text, "3 of 6 differ\n  output 'b_lot': ");
  EXPECT_LT(text.find("'b_lot'"), text.find("'d_small'"));
  EXPECT_LT(text.find("'d_small'"), text.find("'a_little'"));
  for (const char* same : {"scores", "picked", "c_equal"}) EXPECT_LACKS(text, same);
  EXPECT_EQ(report.items.size(), 6U);
}

TEST(Golden, FailedLoadChangesNothing) {
  struct Wide : torch::nn::Module {
    torch::nn::Linear out{register_module("out", torch::nn::Linear(4, 5))};
  };
  Golden golden("a.safetensors", scored());
  Wide module;
  const auto before = all_bits(module);
  const auto text = refusal([&] { golden.load_into(module); });
  EXPECT_CONTAINS(text, "[Golden::load_into] a.safetensors: ");
  EXPECT_CONTAINS(text, "'out.bias' must have shape (5)");
  EXPECT_EQ(all_bits(module), before);
}

// The names in Python are q and k; the module has them in one.
TEST(Golden, GradientsFollowTheKeyMap) {
  struct Packed : torch::nn::Module {
    torch::nn::Linear both{register_module("both", torch::nn::Linear(4, 6))};
  };
  torch::manual_seed(1);
  Packed python;
  const auto x = torch::randn({3, 4}), cotangent = torch::randn({3, 6});
  const auto y = python.both(x);
  (y * cotangent).sum().backward();
  SafetensorsFile file;
  for (const auto& [name, begin, end] : {std::tuple("q", 0, 2), {"k", 2, 6}}) {
    const std::string q = std::string("net.") + name;
    const auto part = [&](const torch::Tensor& all) { return all.detach().slice(0, begin, end); };
    file.tensors.insert("param." + q + ".weight", part(python.both->weight));
    file.tensors.insert("param." + q + ".bias", part(python.both->bias));
    file.tensors.insert("grad.param." + q + ".weight", part(python.both->weight.grad()));
    file.tensors.insert("grad.param." + q + ".bias", part(python.both->bias.grad()));
  }
  file.tensors.insert("out.output", y.detach());
  file.tensors.insert("cotangent.output", cotangent);
  file.metadata = {{"golden", "1"}, {"outputs", "output"}};
  Golden golden("a.safetensors", file);
  Packed module;
  golden.load_into(module, LoadOptions().prefix("net.").key_map({{{"q.*", "k.*"}, "both.*"}}));
  const auto report = golden.compare_gradients(module, module.both(x));
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_EQ(report.items.size(), 2u);
}

TEST(Golden, ReportsWrongMissingAndAdditionalGradients) {
  const auto text_of = [](const SafetensorsFile& file, bool frozen_bias) {
    Golden golden("a.safetensors", file);
    Scorer module;
    golden.load_into(module);
    module.out->bias.requires_grad_(!frozen_bias);
    const auto outputs = module.forward(golden.input("x"), golden.input("at"));
    return golden.compare_gradients(module, outputs).to_string();
  };
  const auto bias = scored().tensors["grad.param.out.bias"];
  EXPECT_CONTAINS(text_of(changed("grad.param.out.bias", bias / 2), false),
                  "1 of 3 differ\n  gradient of 'out.bias': 4 of 4 elements have other bits");
  EXPECT_CONTAINS(text_of(changed("grad.param.out.bias", {}), false),
                  "gradient of 'out.bias': the module has one, and Python has none");
  EXPECT_CONTAINS(text_of(scored(), true),
                  "gradient of 'out.bias': the module has none, and Python has one");
  EXPECT_CONTAINS(text_of(changed("grad.in.x", torch::zeros({3, 4})), false),
                  "gradient of input 'x': 12 of 12 elements have other bits");
}

TEST(Golden, GradientsNeedOutputsThatHaveThem) {
  Golden golden("a.safetensors", scored());
  Scorer module;
  golden.load_into(module);
  const auto [scores, picked] = module.forward(golden.input("x"), golden.input("at"));
  EXPECT_ERROR(golden.compare_gradients(module, {scores, picked.detach()}), c10::ValueError,
               "output 'picked' must require gradients. Got one that does not");
  EXPECT_FALSE(golden.compare_gradients(module, {scores, picked.t()}).ok());
  auto file = scored();
  for (const char* name : {"scores", "picked"})
    file.tensors.erase(std::string("cotangent.") + name);
  EXPECT_CONTAINS(
      refusal([&] { Golden("a.safetensors", file).compare_gradients(module, {scores, picked}); }),
      "[Golden::compare_gradients] a.safetensors: must have gradients. Got no cotangent");
}

TEST(Golden, ComparesHalfTypes) {
  for (const auto dtype : {torch::kHalf, torch::kBFloat16}) {
    auto file = scored();
    for (auto& item : file.tensors) {
      if (item.value().is_floating_point()) item.value() = item.value().to(dtype);
    }
    Golden golden("a.safetensors", file);
    Scorer module;
    module.to(dtype);
    golden.load_into(module);
    const auto report = golden.compare(module.forward(golden.input("x"), golden.input("at")),
                                       Tolerance().rtol_of_max(2e-2));
    EXPECT_TRUE(report.ok()) << report;
  }
}

TEST(Golden, RefusesFilesThatAreNoGoldenFiles) {
  const TempDir dir;
  EXPECT_CONTAINS(refusal([&] { Golden golden(dir / "none.safetensors"); }), "NotFound: [Golden] ");
  save_safetensors(dir / "plain.safetensors", scored().tensors);
  EXPECT_CONTAINS(
      refusal([&] { Golden golden(dir / "plain.safetensors"); }),
      "plain.safetensors: must be a golden file. Got one whose metadata has no `golden`; "
      "save_golden() in docs/parity.md writes golden files");
  write_bytes(dir / "cut.safetensors", "\x10\0\0\0\0\0\0\0{}");
  EXPECT_CONTAINS(refusal([&] { Golden golden(dir / "cut.safetensors"); }), "[Golden] ");
  auto newer = scored();
  newer.metadata["golden"] = "2";
  EXPECT_CONTAINS(golden_error(newer), "must be a golden file of version 1. Got '2'");
}

TEST(Golden, RefusesDamagedFiles) {
  EXPECT_CONTAINS(golden_error(changed("in.x", {})),
                  "a.safetensors: must have the tensor 'in.x', which its metadata names, once");
  EXPECT_CONTAINS(golden_error(changed("out.more", torch::zeros({1}))),
                  "tensor 'out.more' must name the tensor in its metadata");
  EXPECT_CONTAINS(golden_error(changed("weight", torch::zeros({1}))),
                  "tensor 'weight' must begin with");
  for (const auto& [name, value] :
       {std::pair<std::string, at::Tensor>("cotangent.scores", torch::zeros({3})),
        {"grad.in.x", torch::zeros({3, 4}, torch::kDouble)},
        {"grad.in.at", torch::zeros({2}, torch::kLong)},
        {"grad.param.other", torch::zeros({3})}}) {
    EXPECT_CONTAINS(golden_error(changed(name, value)),
                    "tensor '" + name + "' must be a gradient of");
  }
  auto no_outputs = scored();
  for (const auto& name : scored().tensors.keys()) {
    if (name.find("in.") != 0 && name.find("param.") != 0) no_outputs.tensors.erase(name);
  }
  no_outputs.metadata.erase("outputs");
  EXPECT_CONTAINS(golden_error(no_outputs), "must have outputs. Got no tensor");
}

// Bools have no abs(), which a report's order needs.
TEST(Golden, ReportsOutputsThatAreBools) {
  auto file = changed("cotangent.picked", {});
  file.tensors["out.picked"] = torch::ones({2, 4}, torch::kBool);
  const Golden golden("a.safetensors", file);
  const auto outputs = golden.outputs();
  EXPECT_TRUE(golden.compare({outputs["scores"], outputs["picked"]}).ok());
  const auto report = golden.compare({outputs["scores"], outputs["picked"].logical_not()});
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.items.front().name, "output 'picked'") << report;
}

}  // namespace
}  // namespace posenc::testing
