// posenc-parity run and verify for whole models and stacks that Python has just written.

#include <torch/types.h>

#include <filesystem>
#include <sstream>

#include "parity/program/runs.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

const std::string kFolder = std::string(POSENC_LIVE_DIR) + "/transformer_scripts/";

std::vector<std::string> cases() {
  const std::string end = ".io.safetensors";
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(end)) found.push_back(name.substr(0, name.size() - end.size()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

class TransformerFiles : public InFolder {
 protected:
  static std::string path(const std::string& name) { return kFolder + name; }
  static SafetensorsFile io_of(const std::string& name) {
    return load_safetensors(path(name + ".io.safetensors"));
  }
  // --param key=value ..., as Python wrote them for the case, leaving out `without`.
  static std::vector<std::string> params_of(const std::string& name,
                                            const std::string& without = "-") {
    std::vector<std::string> result;
    std::istringstream words(io_of(name).metadata.at("params"));
    for (std::string word; words >> word;) {
      if (word.rfind(without, 0) != 0) result.insert(result.end(), {"--param", word});
    }
    return result;
  }
  Result run(const std::string& weights, const std::string& input,
             std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", weights, "--input", input, "--out", file("out")});
    return posenc_parity(more);
  }
  Result run_with(const std::string& name, const std::map<std::string, at::Tensor>& changed,
                  const std::vector<std::string>& more = {}) {
    const auto from = io_of(name).tensors;
    StateDict tensors;
    for (const auto& item : from) {
      if (!changed.count(item.key())) tensors.insert(item.key(), item.value());
    }
    for (const auto& [key, tensor] : changed) {
      if (tensor.defined()) tensors.insert(key, tensor);
    }
    auto params = params_of(name);
    params.insert(params.end(), more.begin(), more.end());
    return run(path(name + ".pt"), safetensors("in", tensors), params);
  }
  static Result verify(const std::string& file, std::vector<std::string> more) {
    more.insert(more.begin(), {"verify", file});
    return posenc_parity(more);
  }
};

// TorchScript, torch.save with all copies of a tied matrix, and safetensors with only one.
TEST_F(TransformerFiles, RunEqualsPython) {
  ASSERT_GE(cases().size(), 10u);
  for (const auto& name : cases()) {
    for (const std::string format : {".pt", ".state.pt", ".model.safetensors"}) {
      const auto result = run(path(name + format), path(name + ".io.safetensors"), params_of(name));
      ASSERT_EQ(result.status, 0) << name << format << " " << result.err;
      EXPECT_TRUE(within(Op::Layers, load_safetensors(file("out")).tensors["output"],
                         io_of(name).tensors["output"]))
          << name << format;
    }
  }
}

TEST_F(TransformerFiles, VerifyComparesWithTheScript) {
  for (const auto& name : cases()) {
    const auto result = verify(path(name + ".pt"), params_of(name));
    EXPECT_EQ(result.status, 0) << name << "\n" << result.out << result.err;
  }
  const auto masked = verify(path("three_way.pt"), params_of("three_way"));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "tie=ThreeWay", masked.out);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "masks", masked.out);
}

TEST_F(TransformerFiles, VerifyFindsAWrongParameter) {
  for (const std::string wrong : {"norm_first=0", "num_heads=1", "layer_norm_eps=0.5"}) {
    auto params = params_of("three_way", wrong.substr(0, wrong.find('=')));
    params.insert(params.end(), {"--param", wrong});
    const auto result = verify(path("three_way.pt"), params);
    EXPECT_EQ(result.status, 1) << wrong << "\n" << result.out;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "NOT equal", result.out);
  }
}

TEST_F(TransformerFiles, VerifyNamesTheOptionThatExplainsADifference) {
  const auto layout =
      verify(path("encoder_sequence_first.pt"), params_of("encoder_sequence_first", "batch_first"));
  EXPECT_EQ(layout.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                      "hint: the file's class takes (L, B, D): --param batch_first=false",
                      layout.out);
  const auto norm = verify(path("three_way.pt"), params_of("three_way", "norm_first"));
  EXPECT_EQ(norm.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "--param norm_first=1", norm.out);
}

// torch.nn.TransformerEncoder calls the mask `mask`.
TEST_F(TransformerFiles, InputsMayHavePythonsNames) {
  const auto src = io_of("encoder").tensors["src"];
  const auto mask = torch::ones({src.size(1), src.size(1)}, torch::kBool).triu(1);
  const auto output = [&](const std::string& name) {
    const auto result = run_with("encoder", {{name, mask}});
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("out")).tensors["output"];
  };
  const auto masked = output("src_mask");
  EXPECT_TRUE(bit_equal(output("mask"), masked));
  EXPECT_FALSE(bit_equal(output("output"), masked)) << "which is not an input";
}

TEST_F(TransformerFiles, AScriptHasItsNumberOfHeads) {
  const auto input = path("three_way.io.safetensors");
  const auto params = params_of("three_way", "num_heads");
  EXPECT_EQ(run(path("three_way.pt"), input, params).status, 0);
  expect_parity_refused(run(path("three_way.state.pt"), input, params), "run",
                        "pass --param num_heads=N");
  expect_parity_refused(run(path("decoder_output.pt"), path("decoder_output.io.safetensors"),
                            params_of("decoder_output", "activation")),
                        "run", "pass --param activation=swish");
}

// A file may lack the matrix of the source, the target or the output if it is tied to another.
TEST_F(TransformerFiles, WhatIsTiedIsFound) {
  const std::string src = "src_embedding.token_embedding.weight";
  const std::string tgt = "tgt_embedding.token_embedding.weight", out = "final_layer.weight";
  for (const std::string name : {"none", "encoder_decoder", "decoder_output", "three_way"}) {
    const auto whole = load_tensors(path(name + ".state.pt"));
    const bool embeddings = name == "encoder_decoder" || name == "three_way";
    const bool output = name == "decoder_output" || name == "three_way";
    std::vector<std::vector<std::string>> dispensable = {{}};
    if (embeddings) dispensable.insert(dispensable.end(), {{src}});
    if (output) dispensable.insert(dispensable.end(), {{tgt}, {out}});
    if (embeddings && output) dispensable.insert(dispensable.end(), {{src, tgt}, {tgt, out}});
    for (const auto& left_out : dispensable) {
      StateDict part;
      for (const auto& item : whole) {
        const bool skip = std::count(left_out.begin(), left_out.end(), item.key()) != 0;
        if (!skip) part.insert(item.key(), item.value());
      }
      const auto result =
          run(safetensors("part", part), path(name + ".io.safetensors"), params_of(name));
      ASSERT_EQ(result.status, 0) << name << " " << result.err;
      EXPECT_TRUE(within(Op::Layers, load_safetensors(file("out")).tensors["output"],
                         io_of(name).tensors["output"]))
          << name;
    }
  }
  StateDict part;  // the target's matrix may be tied to either
  for (const auto& item : load_tensors(path("encoder_decoder.state.pt"))) {
    if (item.key() != tgt) part.insert(item.key(), item.value());
  }
  const auto file = safetensors("part", part), input = path("encoder_decoder.io.safetensors");
  expect_parity_refused(run(file, input, params_of("encoder_decoder")), "run",
                        "pass --param tie=encoder_decoder or --param tie=decoder_output");
  auto params = params_of("encoder_decoder");
  params.insert(params.end(), {"--param", "tie=encoder_decoder"});
  EXPECT_EQ(run(file, input, params).status, 0);
}

TEST_F(TransformerFiles, CopiesThatDifferAreNotTied) {
  StateDict changed;
  for (const auto& item : load_tensors(path("three_way.state.pt"))) {
    changed.insert(item.key(), item.value().clone());
  }
  changed["final_layer.weight"][0][0] += 1;
  auto params = params_of("three_way");
  const auto weights = safetensors("changed", changed);
  EXPECT_EQ(run(weights, path("three_way.io.safetensors"), params).status, 0);
  params.insert(params.end(), {"--param", "tie=three_way"});
  expect_parity_refused(run(weights, path("three_way.io.safetensors"), params), "run",
                        "are one tensor in the module, but differ");
}

TEST_F(TransformerFiles, RefusesWhatDoesNotFit) {
  const auto tensors = io_of("three_way").tensors;
  const auto tgt = tensors["tgt"];
  const int64_t batch = tgt.size(0), length = tgt.size(1);
  const auto refuse = [&](const std::map<std::string, at::Tensor>& changed,
                          const std::string& text) {
    expect_parity_refused(run_with("three_way", changed), "run", text);
  };
  refuse({{"tgt", {}}}, "must have a tensor `tgt`");
  refuse({{"tgt", torch::zeros({batch, 12}, torch::kLong)}}, "exceeds max_len 11");
  refuse({{"tgt", tgt + 23}}, "every id must lie in");
  refuse({{"tgt", tgt[0]}}, "src and tgt must be ids");
  refuse({{"tgt_mask", torch::zeros({length, length}, torch::kByte)}}, "real numbers");
  refuse({{"tgt_mask", torch::zeros({length, length + 1}, torch::kBool)}}, "must broadcast");
  refuse({{"src_key_padding_mask", torch::zeros({batch, length})}}, "takes a bool tensor");
  refuse({{"src_key_padding_mask", torch::zeros({length}, torch::kBool)}}, "takes (B, S)");
  refuse({{"position_ids", tgt}}, "this module takes no `position_ids`");
  refuse({{"tgt_msk", tgt}}, "this module takes no `tgt_msk`; did you mean tgt_mask?");
  const auto with = [&](const std::string& param, const std::string& text) {
    auto params = params_of("three_way", param.substr(0, param.find('=')));
    params.insert(params.end(), {"--param", param});
    expect_parity_refused(run(path("three_way.pt"), path("three_way.io.safetensors"), params),
                          "run", text);
  };
  with("num_heads=7", "num_heads must divide d_model");
  with("num_heads=0", "num_heads must be positive");
  with("activation=gelo", "the nearest are");
  with("tie=both", "none, encoder_decoder, decoder_output or three_way. Got both");
  with("layer_norm_eps=small", "must be a number. Got small");
  with("num_head=2", "did you mean num_heads?");
}

}  // namespace
}  // namespace posenc::testing
