// posenc encode, which runs an Encoder from a folder, and posenc inspect of such a folder.
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using Json = nlohmann::json;

std::string live_encoder(const std::string& name) { return POSENC_LIVE_DIR "/encoder/" + name; }

class Encode : public InFolder, public ::testing::WithParamInterface<std::string> {
 protected:
  Result encode(const std::string& folder, const StateDict& inputs,
                const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {
        "encode", folder, "--in", safetensors("in.safetensors", inputs), "--out", file("out")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return posenc(arguments);
  }
};

StateDict part_of(const StateDict& all, const std::string& prefix) {
  StateDict part;
  for (const auto& item : all) {
    if (item.key().rfind(prefix, 0) == 0)
      part.insert(item.key().substr(prefix.size()), item.value());
  }
  return part;
}

TEST_P(Encode, WritesWhatTransformersComputes) {
  const auto all = load_safetensors(live_encoder(GetParam() + ".safetensors")).tensors;
  const auto in = part_of(all, "in.");
  const auto result = encode(live_encoder(GetParam()), in);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_CONTAINS(result.out, file("out") + ": `embeddings` float32 (2, ");
  EXPECT_EQ(result.err, "");
  const auto out = load_safetensors(file("out")).tensors;
  ASSERT_EQ(out.size(), 3u);
  auto expected = all["out.last_hidden_state"], got = out["last_hidden_state"];
  if (in.contains("attention_mask")) {
    const auto real = in["attention_mask"].ne(0).unsqueeze(-1);
    expected = expected.masked_select(real), got = got.masked_select(real);
  }
  EXPECT_TRUE(within(Op::Layers, got, expected));
  EXPECT_TRUE(within(Op::Layers, out["pooled"], all["out.pooled"]));
  // The patches of a vision transformer are a matrix product, whose bits depend on the threads.
  if (in.contains("pixel_values"))
    EXPECT_TRUE(within(Op::Linear, out["embeddings"], all["out.embeddings"]));
  else
    EXPECT_TRUE(bit_equal(out["embeddings"], all["out.embeddings"]));
}

INSTANTIATE_TEST_SUITE_P(Made, Encode, ::testing::Values("bert", "clip", "dinov2", "vit"),
                         [](const auto& info) { return info.param; });

using EncodeInputs = Encode;

TEST_F(EncodeInputs, TakeTokenTypesAndPositions) {
  const auto all = load_safetensors(live_encoder("bert_types.safetensors")).tensors;
  const auto in = part_of(all, "in.");
  const auto written = [&](const std::vector<std::string>& names) {
    StateDict some;
    for (const auto& name : names) some.insert(name, in[name]);
    const auto result = encode(live_encoder("bert"), some);
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("out")).tensors["embeddings"];
  };
  const auto expected = all["out.embeddings"];
  EXPECT_TRUE(bit_equal(written({"input_ids", "attention_mask", "token_type_ids", "position_ids"}),
                        expected));
  EXPECT_FALSE(written({"input_ids", "token_type_ids"}).equal(expected)) << "positions count";
  EXPECT_FALSE(written({"input_ids", "position_ids"}).equal(expected)) << "token types count";
}

TEST_F(EncodeInputs, TakeBoxes) {
  const auto all = load_safetensors(live_encoder("gradients/layoutlm.safetensors")).tensors;
  StateDict given;
  for (const char* name : {"input_ids", "attention_mask", "bbox"}) given.insert(name, all[name]);
  const auto result = encode(live_encoder("gradients/layoutlm"), given);
  EXPECT_EQ(result.status, 0) << result.err;
  const auto rows = all["attention_mask"].ne(0).unsqueeze(-1);
  const auto got = load_safetensors(file("out")).tensors["last_hidden_state"];
  EXPECT_TRUE(got.masked_select(rows).allclose(all["value.last_hidden_state"].masked_select(rows),
                                               /*rtol=*/0.0, /*atol=*/1e-5));
}

// A whole model in 8 bits: with fused multiply-add, attention and norms have the same bits too.
TEST_F(EncodeInputs, Int8HasTheSameBitsOnEveryInstructionSet) {
  const auto all = load_safetensors(live_encoder("bert.safetensors")).tensors;
  const auto in = safetensors("in.safetensors", part_of(all, "in."));
  const auto hidden = [&](const std::vector<std::string>& environment) {
    std::vector<std::string> command = {"/usr/bin/env"};
    command.insert(command.end(), environment.begin(), environment.end());
    command.insert(command.end(), {POSENC_CLI, "encode", live_encoder("bert"), "--in", in, "--out",
                                   file("out"), "--int8"});
    const auto result = run_program(command);
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("out")).tensors["last_hidden_state"];
  };
  const auto expected = hidden({});
  const auto real = all["in.attention_mask"].ne(0).unsqueeze(-1);
  const auto wide = all["out.last_hidden_state"] * real;
  const double distance = ((expected - wide).norm() / wide.norm()).item<double>();
  EXPECT_GT(distance, 1e-5) << "8 bits change something";
  EXPECT_LT(distance, 0.05);
  for (const std::string& set : kernels::set_names()) {
    if (!kernels::is_fused(*kernels::find(set))) continue;
    for (const char* threads : {"1", "2"})
      EXPECT_TRUE(bit_equal(
          hidden({"POSENC_ISA=" + set, std::string("OMP_NUM_THREADS=") + threads}), expected))
          << set << ", " << threads;
  }
}

TEST_F(EncodeInputs, BFloat16IsNearerToFloat32Than8Bits) {
  const auto all = load_safetensors(live_encoder("bert.safetensors")).tensors;
  const auto in = part_of(all, "in.");
  const auto wide = all["out.last_hidden_state"] * all["in.attention_mask"].ne(0).unsqueeze(-1);
  const auto distance = [&](const std::string& dtype) {
    const auto result = encode(live_encoder("bert"), in, {dtype});
    EXPECT_EQ(result.status, 0) << result.err;
    const auto got = load_safetensors(file("out")).tensors["last_hidden_state"];
    return ((got - wide).norm() / wide.norm()).item<double>();
  };
  EXPECT_GT(distance("--bfloat16"), 1e-5) << "bfloat16 changes something";
  EXPECT_LT(distance("--bfloat16"), distance("--int8"));
  EXPECT_EQ(encode(live_encoder("bert"), in, {"--bfloat16", "--int8"}).status, 2);
  EXPECT_GT(distance("--compute-bfloat16"), 1e-5) << "products in bfloat16 change something";
  EXPECT_LT(distance("--compute-bfloat16"), distance("--int8"));
}

using EncodeErrors = Encode;

TEST_F(EncodeErrors, Refuses) {
  const auto ids = torch::ones({2, 3}, torch::kLong);
  const auto bert = live_encoder("bert");
  expect_refused(encode(bert, dict({{"attention_mask", ids}})), "encode",
                 "must have a tensor `input_ids`, the ids of tokens (B, L); it contains "
                 "`attention_mask` int64 (2, 3)");
  expect_refused(encode(bert, dict({{"ids", ids}})), "encode",
                 "takes no `ids`; did you mean input_ids? Known: input_ids, pixel_values, ");
  expect_refused(encode(bert, dict({{"input_ids", ids}, {"atention_mask", ids}})), "encode",
                 "takes no `atention_mask`; did you mean attention_mask?");
  expect_refused(encode(bert, dict({{"input_ids", ids}, {"pixel_values", torch::ones({2})}})),
                 "encode", "an encoder of token ids takes no `pixel_values`, but `input_ids`");
  expect_refused(encode(live_encoder("vit"), dict({{"input_ids", ids}})), "encode",
                 "an encoder of images takes no `input_ids`, but `pixel_values`");
  expect_refused(encode(bert, dict({{"input_ids", ids}, {"attention_mask", torch::ones({2, 3})}})),
                 "encode", "attention_mask must be bool or an integer type");
  expect_refused(encode(bert, dict({{"input_ids", ids}, {"task_type_ids", ids}})), "encode",
                 "these embeddings have no task types");
  expect_refused(encode(bert, dict({{"input_ids", ids}, {"bbox", ids}})), "encode",
                 "these embeddings have no boxes");
  expect_refused(encode(bert, dict({{"input_ids", ids * 40000}})), "encode", "40000");
  expect_refused(encode(bert, dict({{"input_ids", torch::ones({1, 65}, torch::kLong)}})), "encode",
                 "holds 64 tokens. Got 65");
  expect_refused(encode(file("nowhere"), dict({{"input_ids", ids}})), "encode", "nowhere");
  EXPECT_FALSE(std::filesystem::exists(file("out"))) << "nothing is written for bad input";
  EXPECT_EQ(posenc({"encode", bert}).status, 2);
}

using EncodeSentences = Encode;

TEST_F(EncodeSentences, SaysThatPooledIsNotTheSentenceVector) {
  const auto folder = file("model");
  std::filesystem::copy(live_encoder("bert"), folder, std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(folder + "/1_Pooling");
  write_bytes(folder + "/1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  write_bytes(folder + "/modules.json",
              R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                  {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                  {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  const auto result = encode(folder, dict({{"input_ids", torch::ones({2, 3}, torch::kLong)}}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "posenc encode: " + folder +
                            " is a sentence-transformers model. Its sentence vectors are made from "
                            "last_hidden_state by Pooling (mean_tokens), Normalize, which posenc "
                            "encode does not compute; `pooled` is not written\n");
  const auto out = load_safetensors(file("out")).tensors;
  EXPECT_TRUE(out.contains("last_hidden_state"));
  EXPECT_FALSE(out.contains("pooled"));
}

TEST_F(EncodeSentences, RefusesToConvertAStaticEmbedding) {
  std::filesystem::create_directory(file("static"));
  write_bytes(file("static/modules.json"),
              R"([{"path": "", "type": "sentence_transformers.models.StaticEmbedding"}])");
  write_bytes(file("lines.txt"), "a text\n");
  expect_refused(posenc({"encode", file("static"), "--text", file("lines.txt"), "--out",
                         file("out"), "--int8"}),
                 "encode", "weights must be float32, without exceptions, for a static embedding");
}

class InspectFolder : public InFolder {};

TEST_F(InspectFolder, NamesModelTypeAndEmbeddings) {
  const auto result = posenc({"inspect", live_encoder("bert")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_CONTAINS(result.out, "encoder/bert: model type bert, embeddings preset bert\n");
  EXPECT_CONTAINS(result.out, "model.safetensors: safetensors, ");
  EXPECT_CONTAINS(posenc({"inspect", live_encoder("clip")}).out,
                  "type clip, embeddings preset clip\n");
  const auto seen = Json::parse(posenc({"inspect", "--json", live_encoder("vit")}).out);
  EXPECT_EQ(seen.at("model_type"), "vit");
  EXPECT_EQ(seen.at("embeddings_preset"), "vit");
  EXPECT_EQ(seen.at("file"), live_encoder("vit") + "/model.safetensors");
  EXPECT_GT(seen.at("tensors").size(), 10u);
}

TEST_F(InspectFolder, TakesAFolderWithAnUnknownOrNoConfiguration) {
  save_safetensors(file("model.safetensors"), dict({{"x", torch::ones({2})}}));
  const auto inspected = [&] {
    return Json::parse(posenc({"inspect", "--json", folder_.path().string()}).out);
  };
  EXPECT_TRUE(inspected().at("model_type").is_null());
  text_file("config.json", R"({"model_type": "novel"})");
  EXPECT_EQ(inspected().at("model_type"), "novel");
  EXPECT_TRUE(inspected().at("embeddings_preset").is_null());
  EXPECT_CONTAINS(posenc({"inspect", folder_.path().string()}).out,
                  "model type novel, embeddings preset unknown\n");
  text_file("config.json", "[]");
  expect_refused(posenc({"inspect", folder_.path().string()}), "inspect", "must be a JSON object");
}

}  // namespace
}  // namespace posenc::testing
