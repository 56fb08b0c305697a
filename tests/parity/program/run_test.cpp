#include <torch/types.h>

#include <set>
#include <sstream>

#include "parity/program/runs.h"
#include "posenc/positions/functional/timestep_embedding.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/transformer/layers/gated_feed_forward.h"
#include "posenc/weights/load.h"
#include "posenc/weights/manifest.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

class Run : public InFolder {
 protected:
  // Runs FILE on `tensors` and returns the output.
  at::Tensor output(const std::string& weights, const StateDict& tensors,
                    std::vector<std::string> more = {}) {
    const auto result = attempt(weights, tensors, more);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
    return load_safetensors(file("out.any")).tensors["output"];
  }

  Result attempt(const std::string& weights, const StateDict& tensors,
                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"run",     weights,
                                        "--input", safetensors("in.safetensors", tensors),
                                        "--out",   file("out.any")};
    command.insert(command.end(), more.begin(), more.end());
    return posenc_parity(command);
  }

  const at::Tensor ids = torch::tensor({{3, 0, 3, 6}, {1, 2, 5, 4}});
  const at::Tensor weight = torch::randn({7, 6});
  const at::Tensor pe = sinusoid_table(preset("notebook_003", 6), 9).unsqueeze(0);
};

TEST_F(Run, EqualsPythonBitForBit) {
  for (const auto& path : script_files()) {
    const auto io = load_safetensors(path.substr(0, path.size() - 3) + ".io.safetensors").tensors;
    EXPECT_TRUE(bit_equal(output(path, dict({{"input", io["input"]}})), io["output"])) << path;
  }
}

TEST_F(Run, SafetensorsEqualTorchScript) {
  for (const auto& path : script_files()) {
    const auto class_name = read_manifest(path).class_name;
    const auto io = load_safetensors(path.substr(0, path.size() - 3) + ".io.safetensors").tensors;
    std::vector<std::string> module = {"--module", class_name};
    if (class_name == "TopLevelTracedModule") module.clear();
    const auto weights = safetensors("weights.bin", load_tensors(path));
    EXPECT_TRUE(bit_equal(output(weights, dict({{"input", io["input"]}}), module), io["output"]))
        << path;
  }
}

TEST_F(Run, TakesInt32Ids) {
  const auto weights = safetensors("w", dict({{"embedding.weight", weight}}));
  const auto got =
      output(weights, dict({{"input", ids.to(torch::kInt)}}), {"--module", "TransformerEmbedding"});
  EXPECT_TRUE(bit_equal(got, weight.index({ids}) * std::pow(6.0, 0.5)));
}

TEST_F(Run, OffsetAndPositionIds) {
  const auto weights =
      safetensors("w", dict({{"token_embedding.weight", weight}, {"position_encoding.pe", pe}}));
  const auto tokens = weight.index({ids}) * std::pow(6.0, 0.5);
  const auto rows = pe.squeeze(0);
  for (const auto& offset :
       {torch::tensor(5), torch::tensor({5}), torch::tensor({5}, torch::kInt)}) {
    const auto got = output(weights, dict({{"input", ids}, {"offset", offset}}));
    EXPECT_TRUE(bit_equal(got, tokens + rows.slice(0, 5, 9)));
  }
  const auto positions = torch::tensor({{8, 1, 0, 0}, {2, 2, 7, 3}});
  const auto got = output(weights, dict({{"input", ids}, {"position_ids", positions}}));
  EXPECT_TRUE(bit_equal(got, tokens + rows.index({positions})));
}

TEST_F(Run, ParametersOverrideOptions) {
  const auto weights =
      safetensors("w", dict({{"token_embedding.weight", weight}, {"position_encoding.pe", pe}}));
  const auto rows = pe.squeeze(0);
  const auto plain = output(weights, dict({{"input", ids}}), {"--param", "scale=none"});
  EXPECT_TRUE(bit_equal(plain, weight.index({ids}) + rows.slice(0, 0, 4)));
  const auto last = output(weights, dict({{"input", ids}}),
                           {"--param", "scale=0.5", "--param", "batch_first=false"});
  EXPECT_TRUE(bit_equal(last, weight.index({ids}) * 0.5 + rows.slice(0, 0, 2).unsqueeze(1)));
  const auto far = output(safetensors("p", dict({{"pe", pe}})),
                          dict({{"input", torch::zeros({1, 12, 6})}}), {"--param", "grow=true"});
  EXPECT_TRUE(bit_equal(far.squeeze(0), sinusoid_table(preset("notebook_003", 6), 12)));
}

TEST_F(Run, APrefixIsStripped) {
  const auto weights = safetensors("w", dict({{"model.embed.pe", pe}, {"model.head", weight}}));
  const auto x = torch::randn({2, 4, 6});
  const auto got = output(weights, dict({{"input", x}}), {"--prefix", "model.embed."});
  EXPECT_TRUE(bit_equal(got, x + pe.slice(1, 0, 4)));
  expect_parity_refused(attempt(weights, dict({{"input", x}}), {"--prefix", "model.embd."}), "run",
                        "no name that begins with model.embd.");
}

TEST_F(Run, APrefixWithoutItsDotIsRecognised) {
  const auto weights = safetensors("w", dict({{"model.embed.pe", pe}}));
  const auto in = dict({{"input", torch::randn({2, 4, 6})}});
  expect_parity_refused(attempt(weights, in, {"--prefix", "model.embed"}), "run",
                        "--prefix model.embed: must include the dot, as in --prefix "
                        "model.embed.;");
}

TEST_F(Run, NamesMayBeginWithADot) {
  const auto weights = safetensors("w", dict({{".pe", pe}}));
  const auto x = torch::randn({2, 4, 6});
  EXPECT_TRUE(
      bit_equal(output(weights, dict({{"input", x}}), {"--prefix", "."}), x + pe.slice(1, 0, 4)));
}

TEST_F(Run, NamesFromAFileCannotCommandATerminal) {
  const std::string name = "\033[2J\007" + std::string(1000, 'n');
  const auto weights = safetensors("w", dict({{name, pe}}));
  const auto in = dict({{"inputs\033[1m", torch::zeros({1})}, {"x", torch::zeros({1})}});
  std::vector<Result> results = {attempt(weights, in), attempt(weights, in, {"--prefix", "other."}),
                                 attempt(safetensors("p", dict({{"pe", pe}})), in)};
  for (const auto& result : results) {
    EXPECT_EQ((result.out + result.err).find_first_of("\033\007"), std::string::npos)
        << result.out << result.err;
  }
  EXPECT_LT(results[0].err.size(), 20'000u) << "a long name is cut";
}

TEST_F(Run, AMisspeltModuleIsAUsageError) {
  const auto weights = safetensors("w", dict({{"pe", pe}}));
  const auto result = attempt(weights, dict({{"input", pe}}), {"--module", "PositionalEncodng"});
  EXPECT_EQ(result.status, 2);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                      "Got PositionalEncodng; did you mean PositionalEncoding?", result.err);
}

TEST_F(Run, TimestepsOntoAnImage) {
  const auto w0 = torch::randn({3, 6}), b0 = torch::randn({3});
  const auto w2 = torch::randn({2, 3}), b2 = torch::randn({2});
  const auto weights = safetensors("w", dict({{"pe.embedding.weight", weight},
                                              {"pe_linear.0.weight", w0},
                                              {"pe_linear.0.bias", b0},
                                              {"pe_linear.2.weight", w2},
                                              {"pe_linear.2.bias", b2}}));
  const auto t = torch::tensor({1, 5, 1}), image = torch::randn({2, 4, 4});
  const auto encoding = functional::timestep_embedding(t, weight, {w0, b0, w2, b2});
  EXPECT_TRUE(bit_equal(output(weights, dict({{"input", t}})), encoding));
  EXPECT_TRUE(bit_equal(output(weights, dict({{"input", t}, {"image", image}})), image + encoding));
}

TEST_F(Run, TypesOfTheFileAreKept) {
  for (const auto type : {torch::kHalf, torch::kBFloat16, torch::kDouble}) {
    const auto weights = safetensors("w", dict({{"pe", pe.to(type)}}));
    const auto x = torch::randn({1, 3, 6}).to(type);
    EXPECT_TRUE(bit_equal(output(weights, dict({{"input", x}})), x + pe.to(type).slice(1, 0, 3)));
  }
}

TEST_F(Run, PartsOfDecoderOnlyModels) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 3, 8});
  const auto input = dict({{"input", x}});
  RMSNorm llama(RMSNormOptions(8).eps(1e-5)), gemma(RMSNormOptions::gemma(8));
  llama->weight.copy_(torch::rand(8));
  gemma->weight.copy_(llama->weight);
  const auto norm = safetensors("norm", dict({{"weight", llama->weight.detach()}}));
  EXPECT_TRUE(bit_equal(output(norm, input, {"--module", "LlamaRMSNorm", "--param", "eps=1e-5"}),
                        llama->forward(x)));
  EXPECT_TRUE(bit_equal(output(norm, input, {"--module", "GemmaRMSNorm"}), gemma->forward(x)));
  for (const std::string gate : {"silu", "gelu_pytorch_tanh"}) {
    GatedFeedForward network(GatedFeedForwardOptions(8, 5).gate(activation_of(gate)));
    const auto file = safetensors("mlp", state_dict(*network));
    const char* name = gate == "silu" ? "LlamaMLP" : "GemmaMLP";
    EXPECT_TRUE(bit_equal(output(file, input, {"--module", name}), network->forward(x)));
  }
  const auto options = rotary_preset("cohere", 8).base(500.0);
  const auto frequencies = rotary_frequencies(options).inv_freq;
  const auto rotary = safetensors("rotary", dict({{"inv_freq", frequencies}}));
  const auto heads = torch::randn({1, 2, 3, 8});
  const auto got = output(rotary, dict({{"input", heads}}),
                          {"--module", "RotaryEmbedding", "--param", "preset=cohere"});
  EXPECT_TRUE(bit_equal(got, std::get<0>(functional::rotary(heads, {}, options))));
  const auto unnamed = attempt(rotary, dict({{"input", heads}}), {"--module", "RotaryEmbedding"});
  expect_parity_refused(unnamed, "run", "pass --param preset=NAME");
}

TEST_F(Run, RefusedInputsWriteNothing) {
  const auto weights =
      safetensors("w", dict({{"token_embedding.weight", weight}, {"position_encoding.pe", pe}}));
  const auto tokens = safetensors("t", dict({{"embedding.weight", weight}}));
  const auto learned = safetensors(
      "l", dict({{"token_embedding.weight", weight}, {"position_encoding.pe", pe + 1}}));
  struct Case {
    std::string weights;
    StateDict input;
    std::vector<std::string> more;
    std::string message;
  };
  const std::vector<Case> cases = {
      {weights, dict({{"inputs", ids}}), {}, "must have a tensor `input`"},
      {weights, dict({{"input", ids * 2}}), {}, "Got 12 at index [0, 3]"},
      {weights, dict({{"input", ids - 1}}), {}, "Got -1 at index [0, 1]"},
      {weights, dict({{"input", ids.to(torch::kFloat)}}), {}, "must be integers. Got Float"},
      {weights, dict({{"input", torch::zeros({1, 10}, torch::kLong)}}), {}, "exceeds max_len 9"},
      {weights, dict({{"input", ids}, {"offset", torch::tensor(-1)}}), {}, "must not be negative"},
      {weights,
       dict({{"input", ids}, {"offset", torch::tensor({1, 2})}}),
       {},
       "`offset` must be int64 or int32"},
      {weights,
       dict({{"input", ids}, {"offset", torch::tensor(0.5)}}),
       {},
       "`offset` must be int64 or int32"},
      {weights, dict({{"input", ids}, {"position_ids", ids + 7}}), {}, "Got 10 at index [0, 0]"},
      {weights,
       dict({{"input", ids}, {"position_ids", ids.flatten()}}),
       {},
       "position_ids must be"},
      {weights, dict({{"input", ids}, {"image", weight}}), {}, "takes no `image`"},
      {weights,
       dict({{"input", ids}, {"position_id", ids}}),
       {},
       "this module takes no `position_id`; did you mean position_ids?"},
      {weights, dict({{"input", ids}}), {"--module", "TokenEmbedding"}, "must have the keys"},
      {weights, dict({{"input", ids}}), {"--param", "batchfirst=1"}, "did you mean batch_first?"},
      {weights, dict({{"input", ids}}), {"--param", "grow=perhaps"}, "true or false"},
      {weights, dict({{"input", ids}}), {"--param", "scale=inf"}, "or a number. Got inf"},
      {learned, dict({{"input", ids}}), {"--param", "max_len=5"}, "position_encoding.pe"},
      {tokens, dict({{"input", ids}}), {}, "--module NAME"},
      {tokens,
       dict({{"input", ids}, {"offset", torch::tensor(1)}}),
       {"--module", "TokenEmbedding"},
       "takes no `offset`"},
  };
  const auto before = names().size();
  for (const auto& [path, input, more, message] : cases) {
    expect_parity_refused(attempt(path, input, more), "run", message);
    EXPECT_EQ(names().size(), before + 1) << message;  // only in.safetensors
  }
  const auto result = posenc_parity(
      {"run", weights, "--input", file("in.safetensors"), "--out", file("no/such/folder/out")});
  EXPECT_EQ(result.status, 1);
}

}  // namespace
}  // namespace posenc::testing
