// Tied matrices are one parameter, whatever happens to the model.

#include "posenc/transformer/tying.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "support/compare.h"
#include "support/seed.h"
#include "transformer/tiny.h"
#include "weights/support.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::tiny;
using testing::tiny_model;

const std::string kSrc = "src_embedding.token_embedding.weight";
const std::string kTgt = "tgt_embedding.token_embedding.weight";
const std::string kOut = "final_layer.weight";
constexpr double kRate = 0.125;  // learning rate

class Tied : public ::testing::TestWithParam<Tying> {
 protected:
  Transformer make() const { return tiny_model(tiny(GetParam())); }
  static torch::Tensor run(TransformerImpl& model) {
    const auto options =
        torch::TensorOptions(torch::kLong).device(model.final_layer->bias.device());
    return model.forward(torch::arange(1, 7, options).view({2, 3}),
                         torch::arange(1, 9, options).view({2, 4}), {}, AttentionMask::causal());
  }
  // Checks which matrices, by their Python names, are the same.
  static void expect_tied(TransformerImpl& model, Tying tying) {
    const auto state = state_dict(model);
    const bool embeddings = tying == Tying::EncoderDecoder || tying == Tying::ThreeWay;
    const bool output = tying == Tying::DecoderOutput || tying == Tying::ThreeWay;
    EXPECT_EQ(state[kSrc].is_same(state[kTgt]), embeddings);
    EXPECT_EQ(state[kTgt].is_same(state[kOut]), output);
    EXPECT_EQ(model.src_embedding->token_embedding->weight.is_same(
                  model.tgt_embedding->token_embedding->weight),
              embeddings);
    // forward() must read the registered tensor: a new value changes the output.
    const torch::NoGradGuard no_grad;
    for (const auto& name : {kSrc, kTgt, kOut}) {
      const auto before = run(model).clone();
      state[name].mul_(2.0);  // exact, and so is the inverse
      EXPECT_FALSE(bit_equal(run(model), before)) << name;
      state[name].div_(2.0);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Each, Tied, ::testing::ValuesIn(testing::kTyings),
                         [](const auto& info) { return to_string(info.param); });

TEST_P(Tied, IsOneParameterUnderPythonsNames) {
  auto model = make();
  std::set<const void*> distinct;
  for (const auto& parameter : model->parameters()) {
    EXPECT_TRUE(distinct.insert(parameter.unsafeGetTensorImpl()).second) << "registered twice";
  }
  const size_t tied = GetParam() == Tying::None ? 0 : GetParam() == Tying::ThreeWay ? 2 : 1;
  const auto untied = tiny_model();
  EXPECT_EQ(model->parameters().size(), untied->parameters().size() - tied);
  EXPECT_EQ(state_dict(*model).size(), state_dict(*untied).size()) << "all names are known";
  EXPECT_TRUE(model->named_parameters().contains("final_layer.bias"));
  expect_tied(*model, GetParam());
}

TEST_P(Tied, SurvivesCloneToAndTrain) {
  auto model = make();
  const auto before = run(*model);
  model->train();
  model->to(torch::kDouble);
  expect_tied(*model, GetParam());
  model->to(torch::kFloat);
  model->eval();
  EXPECT_TRUE(bit_equal(run(*model), before));

  auto copy = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
  EXPECT_TRUE(bit_equal(run(*copy), before));
  expect_tied(*copy, GetParam());
  {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model->parameters()) parameter.mul_(2.0);
  }
  EXPECT_TRUE(bit_equal(run(*copy), before)) << "the copy shares nothing with the original";
  auto second = std::dynamic_pointer_cast<TransformerImpl>(copy->clone());
  copy.reset();
  expect_tied(*second, GetParam());
  EXPECT_EQ(second->parameters().size(), model->parameters().size());
}

// Each kind of optimiser updates every matrix once. Adam's first step is the learning rate,
// whatever the gradient, so a second update in the same step would be visible.
TEST_P(Tied, IsSteppedOnceByAnOptimiserOfBeforeOrAfter) {
  constexpr int kKinds = 4;
  const auto make_optimizer = [](int kind, const std::vector<torch::Tensor>& all) {
    std::unique_ptr<torch::optim::Optimizer> made;
    switch (kind) {
      case 0: made = std::make_unique<torch::optim::SGD>(all, kRate); break;
      case 1: made = std::make_unique<torch::optim::Adam>(all, kRate); break;
      case 2: made = std::make_unique<FusedSGD>(all, kRate); break;
      default: made = std::make_unique<FusedAdam>(all, kRate);
    }
    return made;
  };
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const bool before : {true, false}) {
      auto model = make();
      std::unique_ptr<torch::optim::Optimizer> optimizer;
      if (before) optimizer = make_optimizer(kind, model->parameters());
      model->to(torch::kDouble);
      const auto copy = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
      if (!before) optimizer = make_optimizer(kind, model->parameters());
      run(*model).square().sum().backward();
      run(*copy).square().sum().backward();
      optimizer->step();
      const auto stepped = state_dict(*model), still = state_dict(*copy);
      for (const auto& name : {kSrc, kTgt, kOut}) {
        const auto gradient = still[name].grad();
        const bool adam = kind % 2 == 1;
        const auto step = adam ? gradient / (gradient.abs() + 1e-8) : gradient;
        EXPECT_TRUE(testing::within(testing::Op::Layers, stepped[name].detach(),
                                    still[name].detach() - kRate * step))
            << name << " by " << kind;
      }
    }
  }
}

TEST_P(Tied, IsClippedOnce) {
  auto model = make();
  model->to(torch::kDouble);
  run(*model).square().sum().backward();
  std::map<const void*, double> squares;
  for (const auto& item : state_dict(*model)) {
    if (!item.value().grad().defined()) continue;  // the position table
    squares[item.value().unsafeGetTensorImpl()] = item.value().grad().square().sum().item<double>();
  }
  double sum = 0.0;
  for (const auto& [tensor, square] : squares) sum += square;
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_(model->parameters(), 1e9), std::sqrt(sum),
              1e-12 * std::sqrt(sum));
}

// The embedding's backward may add to an existing gradient in place, and a tied matrix has several
// sources of gradients: in any order, two backward passes give twice the sum of one.
TEST_P(Tied, GradientsOfSeveralUsesAndPassesAddUp) {
  auto model = make();
  const auto loss = [&] { return run(*model).square().sum(); };
  loss().backward();
  std::vector<torch::Tensor> once;
  for (const auto& parameter : model->parameters()) once.push_back(parameter.grad().clone());
  loss().backward();
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(bit_equal(model->parameters()[i].grad(), once[i] * 2)) << i;
  }
  // The parts separately: the encoder's use alone, then the decoder's and the output's.
  model->zero_grad();
  const auto src = torch::arange(1, 7).view({2, 3}), tgt = torch::arange(1, 9).view({2, 4});
  const auto memory = model->encode(src);
  const auto cut = memory.detach().requires_grad_(true);
  model->decode(tgt, cut, AttentionMask::causal()).square().sum().backward();
  memory.backward(cut.grad());
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(testing::within(testing::Op::Layers, model->parameters()[i].grad(), once[i])) << i;
  }
}

TEST_P(Tied, LoadsFromOneCopyOrAll) {
  auto model = make();
  const auto whole = state_dict(*model);
  for (const auto& left_out :
       {std::vector<std::string>{}, {kTgt}, {kOut}, {kTgt, kOut}, {kSrc}, {kSrc, kTgt}}) {
    StateDict part;
    for (const auto& item : whole) {
      const auto& name = item.key();
      const bool out = std::find(left_out.begin(), left_out.end(), name) != left_out.end();
      if (!out) part.insert(name, item.value().clone());
    }
    // A name may be missing if another name of the same matrix is present.
    bool complete = true;
    for (const auto& name : left_out) {
      bool found = false;
      for (const auto& item : whole) {
        found = found || (part.contains(item.key()) && item.value().is_same(whole[name]));
      }
      complete = complete && found;
    }
    torch::manual_seed(testing::seed(99));
    Transformer other(tiny(GetParam()));
    other->eval();
    if (complete) {
      load_state_dict(*other, part);
      EXPECT_TRUE(bit_equal(run(*other), run(*model)));
      expect_tied(*other, GetParam());
    } else {
      EXPECT_THROW(load_state_dict(*other, part), std::exception);
    }
  }
}

TEST_P(Tied, RefusesCopiesThatDiffer) {
  auto model = make();
  StateDict state;
  for (const auto& item : state_dict(*model)) state.insert(item.key(), item.value().clone());
  const auto before = run(*model);
  state[kTgt][0][0] += 1.0;
  if (GetParam() == Tying::None) {
    EXPECT_NO_THROW(load_state_dict(*model, state));
    return;
  }
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, kTgt,
                      testing::message_of([&] { load_state_dict(*model, state); }));
  EXPECT_TRUE(bit_equal(run(*model), before));

  // Choose the winner by excluding the others.
  for (const auto& winner : {kSrc, kTgt, kOut}) {
    LoadOptions options;
    const auto one = state_dict(*model);
    for (const auto& other : {kSrc, kTgt, kOut}) {
      if (other != winner && one[other].is_same(one[winner])) {
        options.key_map().emplace_back(other, "");
      }
    }
    if (!one[winner].is_same(one[kTgt])) continue;  // not one of those that differ
    load_state_dict(*model, state, options);
    EXPECT_TRUE(bit_equal(state_dict(*model)[kTgt], state[winner])) << winner;
  }
}

TEST_P(Tied, SavesAndLoads) {
  const testing::TempDir folder;
  auto model = make();
  for (const char* name : {"model.safetensors", "model.pt"}) {
    save_weights(*model, folder / name);
    torch::manual_seed(testing::seed(99));
    Transformer other(tiny(GetParam()));
    other->eval();
    load_weights(*other, folder / name);
    EXPECT_TRUE(bit_equal(run(*other), run(*model))) << name;
    expect_tied(*other, GetParam());
  }
  std::stringstream archive;
  torch::save(model, archive);
  Transformer other(tiny(GetParam()));
  torch::load(other, archive);
  other->eval();
  EXPECT_TRUE(bit_equal(run(*other), run(*model)));
  expect_tied(*other, GetParam());
}

TEST(TyingErrors, NamesTheWays) {
  for (const Tying tying : testing::kTyings) EXPECT_EQ(tying_of(to_string(tying)), tying);
  EXPECT_ERROR(tying_of("both"), c10::ValueError, "none, encoder_decoder, decoder_output or");
  EXPECT_ERROR(to_string(static_cast<Tying>(7)), c10::ValueError, "one of the four ways. Got 7");
  EXPECT_ERROR(Transformer(tiny().tie(static_cast<Tying>(7))), c10::ValueError, "[Tying]");
  for (const Tying tying : {Tying::EncoderDecoder, Tying::ThreeWay}) {
    EXPECT_ERROR(Transformer(tiny().tie(tying)), c10::ValueError,
                 "src_vocab and tgt_vocab must be equal. Got 11 and 9");
  }
}

}  // namespace
}  // namespace posenc
