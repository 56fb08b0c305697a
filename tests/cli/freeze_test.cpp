// posenc freeze: each command that freezes a model computes the same from the folder that it
// writes.

#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "cli/program.h"
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "models/marian/live.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Freeze : public InFolder {
 protected:
  static std::string live(const std::string& name) { return POSENC_LIVE_DIR "/encoder/" + name; }
  Result freeze(const std::string& folder, std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {"freeze", folder, file("frozen")};
    command.insert(command.end(), more.begin(), more.end());
    return posenc(command);
  }
  // A model of sentence-transformers, with its encoder in the folder `inner`.
  std::string sentence_model(const std::string& name, const std::string& inner,
                             const std::string& stage) const {
    const fs::path folder = file(name);
    fs::create_directories(folder / stage);
    fs::copy(live("bert"), folder / inner);
    const std::string type = R"("type": "sentence_transformers.models.)";
    std::ofstream(folder / "modules.json")
        << R"([{"idx": 0, "name": "0", "path": ")" << inner << "\", " << type
        << R"(Transformer"}, {"idx": 1, "name": "1", "path": ")" << stage << "\", " << type
        << R"(Pooling"}])";
    std::ofstream(folder / stage / "config.json")
        << R"({"word_embedding_dimension": 16, "pooling_mode_max_tokens": true})";
    return folder.string();
  }
  // Expects that a command writes and says the same of both folders; returns what it said.
  void expect_same(const std::string& folder, const std::vector<std::string>& before,
                   const std::vector<std::string>& after, const std::vector<std::string>& dtypes) {
    const auto run = [&](const std::string& from, const std::vector<std::string>& options) {
      std::vector<std::string> command = before;
      command.push_back(from);
      command.insert(command.end(), after.begin(), after.end());
      command.insert(command.end(), options.begin(), options.end());
      return posenc(command);
    };
    const Result own = run(folder, dtypes);
    ASSERT_EQ(own.status, 0) << own.err;
    const std::string expected = bytes_of(file("out"));
    fs::remove_all(file("frozen"));
    ASSERT_EQ(freeze(folder, dtypes).status, 0);
    for (const auto& options : {std::vector<std::string>(), dtypes}) {
      const Result got = run(file("frozen"), options);
      EXPECT_EQ(got.status, 0) << got.err;
      EXPECT_EQ(got.out, own.out);
      EXPECT_EQ(bytes_of(file("out")), expected);
    }
  }
};

TEST_F(Freeze, EncodeTakesTheFrozenFolder) {
  const auto all = load_safetensors(live("bert.safetensors")).tensors;
  const auto in = safetensors("in", dict({{"input_ids", all["in.input_ids"]},
                                          {"attention_mask", all["in.attention_mask"]}}));
  const std::vector<std::vector<std::string>> each = {
      {}, {"--int8"}, {"--bfloat16"}, {"--compute-bfloat16"}, {"--int8", "--compute-bfloat16"}};
  for (const auto& dtypes : each)
    expect_same(live("bert"), {"encode"}, {"--in", in, "--out", file("out")}, dtypes);
  EXPECT_FALSE(fs::exists(file("frozen/model.safetensors")));
}

TEST_F(Freeze, EncodeTakesTheEncoderBelowAHead) {
  const auto in = safetensors("in", dict({{"input_ids", torch::tensor({{3, 4, 5}, {6, 7, 8}})}}));
  expect_same(live("emotions"), {"encode"}, {"--in", in, "--out", file("out")}, {"--int8"});
  expect_same(live("emotions"), {"encode"}, {"--in", in, "--out", file("out"), "--head"},
              {"--int8"});
  for (const std::string name :
       {"choices", "lengths"})  // whose heads pool rows that no encoder does
    expect_same(live(name), {"encode"}, {"--in", in, "--out", file("out")}, {"--int8"});
  fs::remove_all(file("frozen"));
  ASSERT_EQ(freeze(live("emotions"), {"--without-head"}).status, 0);
  const Result result =
      posenc({"encode", file("frozen"), "--in", in, "--out", file("out"), "--head"});
  expect_refused(result, "encode", "must be a frozen Classifier. Got one of kind Encoder");
}

TEST_F(Freeze, EncodeTakesAHeadOnADecoderAndAnEncoderWithoutOne) {
  const auto in = safetensors("in", dict({{"input_ids", torch::tensor({{3, 4, 2}, {6, 2, 8}})}}));
  const std::vector<std::string> options = {"--in", in, "--out", file("out")};
  expect_same(live("entailment"), {"encode"}, {"--in", in, "--out", file("out"), "--head"},
              {"--int8"});
  std::vector<std::string> command = {"encode", file("frozen")};
  command.insert(command.end(), options.begin(), options.end());
  expect_refused(posenc(command), "encode", "must be of an encoder. Got one with a decoder");
  expect_same(live("t5"), {"encode"}, options, {"--int8"});
  fs::remove_all(file("frozen"));
  ASSERT_EQ(posenc({"encode", live("entailment"), "--in", in, "--out", file("out")}).status, 0);
  const std::string expected = bytes_of(file("out"));
  ASSERT_EQ(freeze(live("entailment"), {"--without-head"}).status, 0);
  EXPECT_EQ(posenc(command).status, 0);
  EXPECT_EQ(bytes_of(file("out")), expected);
}

TEST_F(Freeze, ClassifyAndFillTakeTheFrozenFolder) {
  const auto text = text_file("text", "a b c\nb\n");
  expect_same(live("emotions"), {"classify"}, {"--text", text}, {"--int8"});
  expect_same(live("entities"), {"classify"}, {"--text", text}, {"--bfloat16"});
  const auto masked = text_file("masked", "a [MASK] c\n");
  expect_same(live("masked"), {"fill"}, {"--text", masked}, {"--int8"});
}

TEST_F(Freeze, GenerateTakesTheFrozenFolder) {
  const auto in = safetensors("in", dict({{"input_ids", torch::tensor({{7, 9, 5, 0}})}}));
  for (const char* name : {"shared", "separate", "untied"})
    expect_same(marian_path(name), {"generate"},
                {"--in", in, "--out", file("out"), "--set", "num_beams=2"}, {"--int8"});
  const Result plain =
      posenc({"generate", file("frozen"), "--in", in, "--out", file("out"), "--plain"});
  expect_refused(plain, "generate", "must hold float32 weights. Got a frozen model");
}

TEST_F(Freeze, TranslateTakesTheFrozenFolder) {
  const auto text = text_file("text", "a b\nc d e\n");
  expect_same(marian_path("shared"), {"translate", "--model"}, {text}, {"--int8"});
  EXPECT_TRUE(fs::exists(file("frozen/source.spm")));
}

// A model of sentence-transformers, whose encoder may have a folder of its own.
TEST_F(Freeze, EncodeTakesAFrozenModelWithStages) {
  const auto text = text_file("text", "a b c\nb\n");
  for (const std::string inner : {"", "0_Transformer"}) {
    const fs::path folder = file("model" + inner);
    fs::create_directories(folder / "1_Pooling");
    fs::copy(live("bert"), folder / inner);
    const std::string type = R"("type": "sentence_transformers.models.)";
    std::ofstream(folder / "modules.json")
        << R"([{"idx": 0, "name": "0", "path": ")" << inner << "\", " << type
        << R"(Transformer"}, {"idx": 1, "name": "1", "path": "1_Pooling", )" << type
        << R"(Pooling"}, {"idx": 2, "name": "2", "path": "2_Normalize", )" << type
        << R"(Normalize"}])";  // which has no files, and so no folder where it is published
    std::ofstream(folder / "1_Pooling" / "config.json")
        << R"({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": true})";
    fs::remove_all(file("frozen"));
    expect_same(folder.string(), {"encode"}, {"--text", text, "--out", file("out")}, {"--int8"});
    EXPECT_TRUE(fs::exists(fs::path(file("frozen")) / inner / "frozen.safetensors"));
  }
}

TEST_F(Freeze, EachInstructionSetWritesOneFileAndReadsIt) {
  const auto in = safetensors("in", dict({{"input_ids", torch::tensor({{3, 4, 5}, {6, 7, 8}})}}));
  const auto run = [&](const std::string& set, const std::vector<std::string>& before,
                       const std::vector<std::string>& dtypes) {
    std::vector<std::string> command = {"/usr/bin/env", "POSENC_ISA=" + set, POSENC_CLI};
    command.insert(command.end(), before.begin(), before.end());
    command.insert(command.end(), dtypes.begin(), dtypes.end());
    const Result result = run_program(command);
    EXPECT_EQ(result.status, 0) << result.err;
  };
  const auto hidden = [&](const std::string& set, const std::string& folder,
                          const std::vector<std::string>& dtypes) {
    run(set, {"encode", folder, "--in", in, "--out", file("out")}, dtypes);
    return load_safetensors(file("out")).tensors["last_hidden_state"];
  };
  const auto sets = kernels::set_names();
  const auto frozen_by = [&](const std::string& set, const std::vector<std::string>& dtypes) {
    run(set, {"freeze", live("bert"), file("frozen")}, dtypes);
    return bytes_of(file("frozen/frozen.safetensors"));
  };
  const std::vector<std::string> packed = {"--compute-bfloat16"},
                                 both = {"--int8", "--compute-bfloat16"};
  for (const auto& dtypes : {packed, both})
    EXPECT_TRUE(frozen_by(sets.front(), dtypes) == frozen_by(sets.back(), dtypes));
  for (const std::string& set : sets)
    EXPECT_TRUE(bit_equal(hidden(set, file("frozen"), {}), hidden(set, live("bert"), both))) << set;
}

// A limit on the file size simulates a full disk: write() fails in the middle of a file.
TEST_F(Freeze, AFullDiskLeavesWhatWasThere) {
  const auto with_limit = [&](std::uintmax_t bytes) {
    const std::string limited =
        "trap '' XFSZ; ulimit -f " + std::to_string(bytes / 512) + "; exec \"$@\"";
    return run_program(
        {"/bin/sh", "-c", limited, "sh", POSENC_CLI, "freeze", live("bert"), file("frozen")});
  };
  const auto all = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::directory_iterator(file("frozen")))
      bytes[entry.path().filename().string()] = bytes_of(entry.path().string());
    return bytes;
  };
  const std::string rule = "cannot be written: File too large";
  expect_refused(with_limit(512), "freeze", rule);
  EXPECT_FALSE(fs::exists(file("frozen")));
  ASSERT_EQ(freeze(live("bert"), {"--int8"}).status, 0);
  const auto before = all();
  expect_refused(with_limit(before.at("frozen.safetensors").size() / 2), "freeze", rule);
  EXPECT_TRUE(all() == before);
}

// The stages of an earlier model would be read with a later one.
TEST_F(Freeze, RefusesAFolderWithFilesOfAnotherModel) {
  const std::string model = sentence_model("model", "", "1_Pooling");
  ASSERT_EQ(freeze(model).status, 0);
  EXPECT_EQ(freeze(model).status, 0);
  expect_refused(freeze(live("bert")), "freeze", "Got modules.json");
}

TEST_F(Freeze, WritesNeitherIntoTheModelNorBesideItsOwnFolder) {
  const std::string model = sentence_model("model", "0_Transformer", "1_Pooling");
  for (const std::string stage : {"0_Transformer", "1_Pooling"}) {
    const std::string settings = bytes_of(model + "/" + stage + "/config.json");
    expect_refused(posenc({"freeze", model, model + "/" + stage}), "freeze",
                   "out must be another folder");
    EXPECT_EQ(bytes_of(model + "/" + stage + "/config.json"), settings);
  }
  fs::create_directories(file("below"));
  const std::string leaves = sentence_model("leaves", "", "../victim");
  expect_refused(posenc({"freeze", leaves, file("below/frozen")}), "freeze",
                 "path must be a folder inside the model's");
  EXPECT_FALSE(fs::exists(file("below/victim")));
}

// Weights that were saved into a frozen folder are another model, which was passed over.
TEST_F(Freeze, RefusesWeightsBesideTheFrozenModel) {
  const auto in = safetensors("in", dict({{"input_ids", torch::tensor({{3, 4, 5}})}}));
  ASSERT_EQ(freeze(live("bert")).status, 0);
  fs::copy(live("bert") + "/model.safetensors", file("frozen"));
  expect_refused(posenc({"encode", file("frozen"), "--in", in, "--out", file("out")}), "encode",
                 "must hold a frozen model or weights, not both");
}

TEST_F(Freeze, RefusesOtherOptionsSettingsAndFolders) {
  const auto in = safetensors("in", dict({{"input_ids", torch::tensor({{3, 4, 5}})}}));
  const std::vector<std::string> encode = {"encode", file("frozen"), "--in",
                                           in,       "--out",        file("out")};
  ASSERT_EQ(freeze(live("bert"), {"--int8"}).status, 0);
  auto other = encode;
  other.emplace_back("--bfloat16");
  expect_refused(posenc(other), "encode",
                 "with which it was frozen, weights=Int8. Got weights=BFloat16");
  expect_refused(posenc({"freeze", file("frozen"), file("again")}), "freeze",
                 "must hold float32 weights. Got a frozen model");
  expect_refused(posenc({"freeze", live("bert"), live("bert")}), "freeze",
                 "out must be another folder");
  fs::copy(live("bert"), file("copy"));
  expect_refused(posenc({"freeze", live("bert"), file("copy")}), "freeze",
                 "out must hold no weights of a model. Got model.safetensors");
  std::ofstream(file("frozen/config.json"), std::ios::app) << " ";
  expect_refused(posenc(encode), "encode", "must have the config.json beside it that it was");
  fs::remove(file("frozen/frozen.safetensors"));
  EXPECT_EQ(posenc(encode).status, 1);
  EXPECT_FALSE(fs::exists(file("out")));
}

}  // namespace
}  // namespace posenc::testing
