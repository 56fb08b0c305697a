// What load_encoder() and the other loaders of folders do with tensors that the model does not
// have. The differential tests load the names of published files (published_names.json).

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "models/types/file_names.h"
#include "posenc/models/classifier.h"
#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using Names = std::vector<std::string>;

LoadReport report_of(const TinyFolder& folder, LoadOptions options = {}) {
  LoadReport report;
  load_encoder(folder.write(), options.report(&report));
  return report;
}

TinyFolder with_prefix(const std::string& prefix) {
  auto folder = TinyFolder::bert();
  folder.rename([&](const std::string& name) { return prefix + name; });
  return folder;
}

TEST(Leftovers, BuffersOfOldReleasesAndOtherHeadsAreIgnored) {
  for (const std::string prefix : {"", "bert."}) {
    SCOPED_TRACE(prefix);
    auto folder = with_prefix(prefix);
    const Names names = {prefix + "embeddings.position_ids", "cls.predictions.bias",
                         "cls.seq_relationship.weight", "classifier.weight",
                         prefix + "encoder.version"};
    for (const std::string& name : names) folder.add(name, {2});
    folder.add(prefix + "encoder.layer.1.attn.bias", {1, 1, 4, 4});  // a causal mask
    const LoadReport report = report_of(folder);
    EXPECT_EQ(report.unexpected, Names());
    EXPECT_EQ(report.ignored.size(), names.size() + 1);
    EXPECT_EQ(report.loaded.size(), 31U) << "3 tables, 2 of the norm, 12 a layer, 2 of the pooler";
  }
}

TEST(Leftovers, TensorsOfModulesThatAreNotComputedAreNamed) {
  for (const std::string prefix : {"", "bert."}) {
    SCOPED_TRACE(prefix);
    auto folder = with_prefix(prefix);
    const Names names = {prefix + "encoder.layer.0.adapter.down.weight", "crf.transitions",
                         prefix + "encoder.layer.one.weight"};
    for (const std::string& name : names) folder.add(name, {2});
    EXPECT_EQ(report_of(folder).unexpected, names);
  }
}

// What would have to be added: a bias of a linear layer, for example.
TEST(Leftovers, TensorsInsideModulesThatAreComputedAreErrors) {
  auto folder = with_prefix("bert.");
  folder.add("bert.encoder.layer.0.attention.self.query.scale", {2});
  folder.add("crf.transitions", {2});
  const auto error = error_of([&] { load_encoder(folder.write()); });
  EXPECT_EQ(error.code(), WeightsErrorCode::UnexpectedKeys);
  EXPECT_CONTAINS(error.what(),
                  "has tensors that the model of its config.json does not have in modules that it "
                  "has: allow_unexpected, or --allow-unexpected of a command, leaves them out\n"
                  "  'bert.encoder.layer.0.attention.self.query.scale'");
  EXPECT_LACKS(error.what(), "crf");
  const LoadReport report = report_of(folder, LoadOptions().allow_unexpected(true));
  EXPECT_EQ(report.unexpected,
            Names({"bert.encoder.layer.0.attention.self.query.scale", "crf.transitions"}));
}

// A rank tells a causal mask from the bias of a layer.
TEST(Leftovers, ABiasIsNoCausalMask) {
  EXPECT_TRUE(hf::is_old_buffer("h.0.attn.bias", 4));
  EXPECT_FALSE(hf::is_old_buffer("h.0.attn.bias", 1));
  EXPECT_TRUE(hf::is_old_buffer("rotary_emb.inv_freq", 1)) << "without a dot before";
  EXPECT_FALSE(hf::is_old_buffer("encoder.conversion", 1));
}

TEST(Leftovers, OfAHeadAreThoseThatItIsNot) {
  auto folder = with_prefix("bert.");
  folder.config["architectures"] = {"BertForMaskedLM"};
  folder.add_pair("cls.predictions.transform.dense", {8, 8});
  folder.add_pair("cls.predictions.transform.LayerNorm", {8});
  folder.add("cls.predictions.bias", {11});
  folder.add("cls.predictions.decoder.bias", {11});
  folder.tensors.insert("cls.predictions.decoder.weight",
                        folder.tensors["bert.embeddings.word_embeddings.weight"]);
  folder.add_pair("cls.seq_relationship", {2, 8});
  folder.add("extra.weight", {2});
  LoadReport report;
  load_classifier(folder.write(), std::nullopt, LoadOptions().report(&report));
  EXPECT_EQ(report.unexpected, Names({"extra.weight"}));
  EXPECT_EQ(report.ignored, Names({"cls.seq_relationship.weight", "cls.seq_relationship.bias"}));
  EXPECT_EQ(std::count(report.loaded.begin(), report.loaded.end(), "head.dense.weight"), 1);
  folder.add("cls.predictions.transform.dense.scale", {8});
  EXPECT_CONTAINS(refusal([&] { load_classifier(folder.write()); }),
                  "'cls.predictions.transform.dense.scale'");
}

TEST(Leftovers, PatternsOfTheKeyMapThatNoNameTakesAreReported) {
  auto folder = TinyFolder::bert();
  const auto map = KeyMap{{"encoder.*", "encoder.*"}, {"module.*", "*"}};
  EXPECT_EQ(report_of(folder, LoadOptions().key_map(map)).unused_patterns, Names({"module.*"}));
  EXPECT_TRUE(report_of(folder).unused_patterns.empty()) << "rules of the loader's own";
}

TEST(Leftovers, TheMessageSpeaksOfTheModel) {
  auto folder = TinyFolder::bert();
  folder.rename([](const std::string& name) {
    return name == "encoder.layer.1.output.dense.bias" ? std::string() : name;
  });
  const auto text = refusal([&] { load_encoder(folder.write()); });
  EXPECT_CONTAINS(text,
                  "model.safetensors: does not have the tensors of the model in its config.json");
  EXPECT_LACKS(text, "module");
}

TEST(Leftovers, ANameOnTheHubIsNoFolder) {
  EXPECT_CONTAINS(
      refusal([] { load_encoder("sentence-transformers/all-MiniLM-L6-v2"); }),
      "must be a folder on this machine; nothing is downloaded; if it is a model's name "
      "on Hugging Face, `hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir "
      "all-MiniLM-L6-v2` makes the folder all-MiniLM-L6-v2");
  EXPECT_CONTAINS(refusal([] { load_encoder("/no/such/folder"); }), "`hf download MODEL");
  const std::string with_nul("folder\0name", 11);
  EXPECT_CONTAINS(refusal([&] { load_encoder(with_nul); }), "folder?name: must be a folder");
}

// What a head that is computed has besides is no other head.
TEST(Leftovers, TensorsOfTheHeadThatAreNotReadAreNamed) {
  auto folder = with_prefix("bert.");
  folder.config["architectures"] = {"BertForSequenceClassification"};
  folder.add_pair("classifier", {2, 8});
  folder.add("classifier.adapter.weight", {2});
  folder.add("qa_outputs.weight", {2, 8});
  LoadReport report;
  load_classifier(folder.write(), std::nullopt, LoadOptions().report(&report));
  EXPECT_EQ(report.unexpected, Names({"classifier.adapter.weight"}));
  EXPECT_EQ(report.ignored, Names({"qa_outputs.weight"}));
}

TEST(Leftovers, AreNamedAsInTheFile) {
  auto folder = TinyFolder::bert();
  folder.add("adapter.weight", {2});
  folder.add("old.head", {2});
  folder.rename([](const std::string& name) { return "mine." + name; });
  folder.add("step", {1});
  const LoadReport report = report_of(
      folder, LoadOptions().prefix("mine.").key_map({{"adapter.*", "crf.*"}, {"old.*", ""}}));
  EXPECT_EQ(report.unexpected, Names({"mine.adapter.weight"}));
  EXPECT_EQ(report.ignored, Names({"mine.old.head", "step"}));
}

TEST(Leftovers, OfAnEncoderWithADecoderDoNotCoverTheDecoder) {
  const auto& t5 = hf::file_names_of("t5");
  EXPECT_FALSE(t5.ignores("decoder.block.0.layer.0.adapter.weight"));
  EXPECT_TRUE(t5.ignores("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"));
}

TEST(Leftovers, OfATableOfVectors) {
  TinyFolder folder;
  folder.add("mine.embedding.weight", {5, 3});
  folder.add("mine.adapter.weight", {2});
  folder.add("step", {1});
  LoadReport report;
  const auto options = LoadOptions().prefix("mine.").report(&report);
  EXPECT_TRUE(bit_equal(load_static_embedding(folder.write(), options),
                        folder.tensors["mine.embedding.weight"]));
  EXPECT_EQ(report.loaded, Names({"embedding.weight"}));
  EXPECT_EQ(report.unexpected, Names({"mine.adapter.weight"}));
  EXPECT_EQ(report.ignored, Names({"step"}));
  folder.add("mine.embedding.scale", {5});
  const std::string path = folder.write();
  EXPECT_CONTAINS(refusal([&] { load_static_embedding(path, options); }), "'mine.embedding.scale'");
  load_static_embedding(path, LoadOptions(options).allow_unexpected(true));
  EXPECT_ERROR(load_static_embedding(path, LoadOptions().allow_missing(true)), c10::ValueError,
               "[load_static_embedding] allow_missing must be false");
}

}  // namespace
}  // namespace posenc::testing
