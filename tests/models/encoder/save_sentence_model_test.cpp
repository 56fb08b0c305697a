// save_sentence_model(): what it refuses and copies. tests/differential/saved_sentences.py opens
// the folders in sentence-transformers.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A model with a Dense, in the layout of old releases.
class OldModel {
 public:
  OldModel() {
    const std::string encoder = source() + "/0_BERT";
    fs::create_directories(source() + "/1_Pooling");
    fs::create_directories(source() + "/2_Dense");
    fs::copy(folder_.write(), encoder, fs::copy_options::recursive);
    put("0_BERT/vocab.txt", "[PAD]");
    put("0_BERT/flax_model.msgpack", "weights");
    put("README.md", "a model");
    put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
    put("2_Dense/config.json", R"({"in_features": 8, "out_features": 4})");
    StateDict dense;
    dense.insert("linear.weight", torch::randn({4, 8}));
    dense.insert("linear.bias", torch::randn({4}));
    save_safetensors(source() + "/2_Dense/model.safetensors", dense);
    json modules;
    for (const auto& [kind, path] :
         {std::pair("Transformer", "0_BERT"), {"Pooling", "1_Pooling"}, {"Dense", "2_Dense"}}) {
      modules.push_back({{"name", path},
                         {"path", path},
                         {"type", std::string("sentence_transformers.models.") + kind}});
    }
    put("modules.json", modules.dump());
  }

  std::string source() const { return dir_.path().string() + "/model"; }
  void put(const std::string& name, const std::string& text) const {
    write_bytes(source() + "/" + name, text);
  }

 private:
  TempDir dir_;
  TinyFolder folder_ = TinyFolder::bert();
};

torch::Tensor vectors_of(Encoder& encoder, SentenceStages& stages) {
  const torch::NoGradGuard no_grad;
  return stages->forward(encoder->forward(torch::tensor({{2, 5, 7, 3}})).last_hidden_state);
}

torch::Tensor vectors_in(const std::string& folder) {
  Encoder encoder = load_encoder(read_sentence_folder(folder).route().encoder);
  SentenceStages stages = load_sentence_stages(folder);
  return vectors_of(encoder, stages);
}

struct Trained {
  explicit Trained(const std::string& source)
      : encoder(load_encoder(read_sentence_folder(source).route().encoder)),
        stages(load_sentence_stages(source)) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : encoder->parameters()) parameter.mul_(1.5);
    for (auto& parameter : stages->parameters()) parameter.mul_(0.5);
  }

  Encoder encoder;
  SentenceStages stages;
};

TEST(SaveSentenceModel, CopiesAllButOtherWeights) {
  const OldModel old;
  Trained model(old.source());
  const TempDir out;
  const std::string path = out / "new";
  save_sentence_model(model.encoder, model.stages, path, SaveSentenceModelOptions(old.source()));
  EXPECT_TRUE(bit_equal(vectors_in(path), vectors_of(model.encoder, model.stages)));
  for (const char* name : {"modules.json", "README.md", "0_BERT/vocab.txt", "0_BERT/config.json"}) {
    EXPECT_TRUE(fs::exists(path + "/" + name)) << name;
  }
  EXPECT_FALSE(fs::exists(path + "/0_BERT/flax_model.msgpack"));
  const auto file = load_safetensors(path + "/0_BERT/model.safetensors");
  EXPECT_TRUE(file.tensors.contains("pooler.dense.weight"))
      << "of BertModel, if not of the vectors";
}

TEST(SaveSentenceModel, ReplacesTheSourceIfAsked) {
  const OldModel old;
  Trained model(old.source());
  const auto options = SaveSentenceModelOptions(old.source());
  EXPECT_ERROR(save_sentence_model(model.encoder, model.stages, old.source(), options),
               c10::ValueError, "folder must not be the source, unless");
  save_sentence_model(model.encoder, model.stages, old.source(),
                      SaveSentenceModelOptions(options).overwrite(true));
  EXPECT_TRUE(bit_equal(vectors_in(old.source()), vectors_of(model.encoder, model.stages)));
}

TEST(SaveSentenceModel, GivesAnEncoderAloneItsStages) {
  const auto folder = TinyFolder::bert();
  const std::string source = folder.write();
  write_bytes(source + "/sentence_bert_config.json", R"({"max_seq_length": 2})");
  Trained model(source);
  const TempDir out;
  save_sentence_model(model.encoder, model.stages, out / "new", SaveSentenceModelOptions(source));
  EXPECT_TRUE(bit_equal(vectors_in(out / "new"), vectors_of(model.encoder, model.stages)));
  EXPECT_TRUE(fs::exists(out / "new/1_Pooling/config.json"));
  EXPECT_FALSE(read_sentence_folder(out / "new").route().max_seq_length)
      << "which was not read before";
}

TEST(SaveSentenceModel, RefusesOtherStages) {
  const OldModel old;
  Trained model(old.source());
  const TempDir out;
  const SaveSentenceModelOptions options(old.source());
  SentenceStages few(SentenceStagesOptions(8).stages({sentence::Pooling{}}));
  EXPECT_ERROR(save_sentence_model(model.encoder, few, out / "new", options), c10::ValueError,
               "stages must be as many as those of " + old.source() + ", 2. Got 1");
  SentenceStages other(SentenceStagesOptions(8).stages(
      {sentence::Pooling{}, sentence::Dense{8, 4, true, Activation::ReLU}}));
  EXPECT_ERROR(save_sentence_model(model.encoder, other, out / "new", options), c10::ValueError,
               "stage 2 must be that of " + old.source() + ". Got one with other options");
  EXPECT_ERROR(save_sentence_model(model.encoder, nullptr, out / "new", options), c10::ValueError,
               "stages must not be an empty holder");
  old.put("config_sentence_transformers.json", R"({"model_type": "CrossEncoder"})");
  EXPECT_ERROR(save_sentence_model(model.encoder, model.stages, out / "new", options),
               c10::ValueError, "source must be no cross-encoder");
  EXPECT_EQ(out.entries(), 0U);
}

// As for an encoder alone: all of it or nothing.
TEST(SaveSentenceModel, AFailureLeavesNothing) {
  const OldModel old;
  Trained model(old.source());
  const SaveSentenceModelOptions options(old.source());
  const TempDir out;
  const std::string path = out / "new";
  fs::create_directory(path);
  write_bytes(path + "/2_Dense", "a file where a folder has to be");
  write_bytes(path + "/README.md", "another model");
  EXPECT_CONTAINS(refusal([&] { save_sentence_model(model.encoder, model.stages, path, options); }),
                  "2_Dense: cannot be made a folder");
  EXPECT_EQ(std::distance(fs::directory_iterator(path), {}), 2);
  EXPECT_EQ(read_bytes(path + "/README.md"), "another model");
  fs::remove_all(path);
  fs::remove(old.source() + "/README.md");
  fs::create_symlink("/proc/self/mem", old.source() + "/README.md");  // which cannot be read
  EXPECT_THROW(save_sentence_model(model.encoder, model.stages, path, options), WeightsError);
  EXPECT_EQ(out.entries(), 0U);
}

TEST(SaveSentenceModel, CopiesAnEmptyFile) {
  const OldModel old;
  old.put("README.md", "");
  Trained model(old.source());
  const TempDir out;
  save_sentence_model(model.encoder, model.stages, out / "new",
                      SaveSentenceModelOptions(old.source()));
  EXPECT_EQ(read_bytes(out / "new/README.md"), "");
}

}  // namespace
}  // namespace posenc::testing
