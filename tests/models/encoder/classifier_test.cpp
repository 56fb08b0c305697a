// load_classifier(): encoders with a head. tests/differential/heads.py compares logits with
// transformers'.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/classifier.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/save_pretrained.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

// The names of a model with a head: the encoder's have a prefix.
TinyFolder with_head(const std::string& architecture) {
  TinyFolder folder = TinyFolder::bert();
  folder.rename([](const std::string& name) { return "bert." + name; });
  folder.config["architectures"] = {architecture};
  return folder;
}

TinyFolder sequence_folder() {
  TinyFolder folder = with_head("BertForSequenceClassification");
  folder.config["id2label"] = {{"0", "bad"}, {"1", "good"}, {"2", "fair"}};
  folder.add_pair("classifier", {3, 8});
  return folder;
}

TinyFolder masked_folder() {
  TinyFolder folder = with_head("BertForMaskedLM");
  folder.rename([](const std::string& name) {
    return name.find("pooler") == std::string::npos ? name : std::string();
  });
  folder.add_pair("cls.predictions.transform.dense", {8, 8});
  folder.add_pair("cls.predictions.transform.LayerNorm", {8});
  folder.add("cls.predictions.bias", {11});
  return folder;
}

const torch::Tensor& tiny_ids() {
  static const torch::Tensor ids = torch::tensor({{2, 5, 7, 3}, {2, 9, 3, 0}});
  return ids;
}

TEST(Classifier, ReadsTheLabelsAndTheKindOfAFolder) {
  const auto folder = sequence_folder();
  auto model = load_classifier(folder.write());
  EXPECT_EQ(model->options.labels(), (std::vector<std::string>{"bad", "good", "fair"}));
  EXPECT_EQ(model->options.kind(), head::Kind::Sequence);
  const auto out = model->forward(tiny_ids());
  EXPECT_EQ(out.logits.sizes(), (std::vector<int64_t>{2, 3}));
  const auto expected = torch::linear(out.encoder.pooled, folder.tensors["classifier.weight"],
                                      folder.tensors["classifier.bias"]);
  EXPECT_TRUE(bit_equal(out.logits, expected));
}

// transformers takes the last column of inputs_embeds, among which it cannot find padding.
TEST(Classifier, PoolsTheLastOfGivenVectors) {
  const char* config = R"({"model_type": "llama", "vocab_size": 11, "hidden_size": 8,
      "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 12})";
  Encoder model(
      encoder_options_from_hf(config).pooling(encoder::Pooling::LastToken).pad_token_id(0));
  model->eval();
  const auto inputs = EncoderInputs().inputs_embeds(torch::randn({2, 4, 8}));
  const auto out = model->forward({}, inputs);
  EXPECT_TRUE(bit_equal(out.pooled, out.last_hidden_state.select(1, 3)));
  EXPECT_TRUE(freeze(model).forward({}, inputs).pooled.allclose(out.pooled, 1e-5, 1e-5));
}

TEST(Classifier, ReadsFilesWithoutAPrefixToo) {
  auto folder = sequence_folder();
  const auto logits = load_classifier(folder.write())->forward(tiny_ids()).logits;
  folder.rename(
      [](const std::string& name) { return name.rfind("bert.", 0) == 0 ? name.substr(5) : name; });
  EXPECT_TRUE(bit_equal(load_classifier(folder.write())->forward(tiny_ids()).logits, logits));
  folder.rename([](const std::string& name) { return "module." + name; });
  auto prefixed = load_classifier(folder.write(), std::nullopt, LoadOptions().prefix("module."));
  EXPECT_TRUE(bit_equal(prefixed->forward(tiny_ids()).logits, logits));
}

TEST(Classifier, HasItsPoolerInAFolderOfSentenceTransformersToo) {
  const auto folder = sequence_folder();
  const auto path = folder.write();
  write_bytes(
      path + "/modules.json",
      R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}])");
  EXPECT_TRUE(load_classifier(path)->forward(tiny_ids()).logits.defined());
}

TEST(Classifier, RefusesAHeadThatIsNotThere) {
  auto folder = sequence_folder();
  folder.rename(
      [](const std::string& name) { return name == "classifier.bias" ? std::string() : name; });
  EXPECT_CONTAINS(refusal([&] { load_classifier(folder.write()); }), "classifier.bias");
  EXPECT_CONTAINS(refusal([&] { load_classifier(folder.write(), head::Kind::Question); }),
                  "qa_outputs.weight");
  auto bare = TinyFolder::bert();
  bare.config["architectures"] = {"BertForSequenceClassification"};
  EXPECT_CONTAINS(refusal([&] { load_classifier(bare.write()); }), "classifier.weight");
}

TEST(Classifier, RefusesAPoolerThatIsNotThere) {
  auto folder = sequence_folder();
  folder.rename([](const std::string& name) {
    return name.find("pooler") == std::string::npos ? name : std::string();
  });
  EXPECT_CONTAINS(refusal([&] { load_classifier(folder.write()); }), "bert.pooler.dense");
}

TEST(Classifier, RefusesLabelsThatAreNotThoseOfTheHead) {
  auto folder = sequence_folder();
  folder.config["id2label"] = {{"0", "bad"}, {"1", "good"}};
  EXPECT_ERROR(load_classifier(folder.write()), c10::ValueError,
               "labels and sizes of the head in config.json must fit the weights:\n"
               "  'classifier.weight' must have shape (2, 8). Got (3, 8)");
  folder.config["id2label"] = {{"0", "bad"}, {"2", "good"}};
  EXPECT_ERROR(load_classifier(folder.write()), c10::ValueError,
               "id2label must have a label for each number from 0 to 1");
  folder.config.erase("id2label");
  EXPECT_ERROR(load_classifier(folder.write()), c10::ValueError, "must have shape (2, 8)");
}

TEST(Classifier, RefusesWhatHasNoHead) {
  auto folder = sequence_folder();
  folder.config["architectures"] = {"BertModel"};
  EXPECT_ERROR(load_classifier(folder.write()), c10::ValueError,
               "architectures must name a model with a head that posenc has");
  folder.config.erase("architectures");
  EXPECT_ERROR(load_classifier(folder.write()), c10::ValueError,
               "architectures must be a list of one class");
  folder.config["problem_type"] = "ranking";
  EXPECT_ERROR(load_classifier(folder.write(), head::Kind::Sequence), c10::ValueError,
               "problem_type must be single_label_classification");
}

TEST(Classifier, TiesTheOutputForMasksUnlessTheFileHasAnother) {
  auto folder = masked_folder();
  auto tied = load_classifier(folder.write());
  EXPECT_TRUE(tied->options.head().tied());
  const auto logits = tied->forward(tiny_ids()).logits;
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 4, 11}));
  folder.tensors.insert("cls.predictions.decoder.weight",
                        folder.tensors["bert.embeddings.word_embeddings.weight"].clone());
  EXPECT_TRUE(load_classifier(folder.write())->options.head().tied());
  folder.tensors["cls.predictions.decoder.weight"].mul_(2.0);
  auto own = load_classifier(folder.write());
  EXPECT_FALSE(own->options.head().tied());
  const auto bias = folder.tensors["cls.predictions.bias"];
  EXPECT_TRUE(
      torch::allclose(own->forward(tiny_ids()).logits - bias, 2.0 * (logits - bias), 1e-4, 1e-5));
  folder.rename([](const std::string& name) {
    return name == "cls.predictions.decoder.weight" ? std::string() : name;
  });
  folder.config["tie_word_embeddings"] = false;
  EXPECT_CONTAINS(refusal([&] { load_classifier(folder.write()); }),
                  "cls.predictions.decoder.weight");
}

TEST(Classifier, TrainsATiedTableAndItsCopy) {
  const auto folder = masked_folder();
  auto model = load_classifier(folder.write());
  const auto copy = std::dynamic_pointer_cast<ClassifierImpl>(model->clone());
  for (auto* one : {model.get(), copy.get()}) {
    one->forward(tiny_ids()).logits.sum().backward();
    const auto gradient = one->table().grad();
    EXPECT_TRUE(gradient[10].abs().sum().item<float>() > 0.0F) << "of a token that is no input";
  }
  EXPECT_TRUE(bit_equal(model->table().grad(), copy->table().grad()));
  EXPECT_NE(model->table().data_ptr(), copy->table().data_ptr());
}

TEST(Classifier, FrozenHasZerosForMaskedTokens) {
  const auto folder = masked_folder();
  auto model = load_classifier(folder.write());
  const auto inputs = EncoderInputs().attention_mask(tiny_ids().ne(0));
  const auto frozen = freeze(model);
  const auto out = frozen.forward(tiny_ids(), inputs), plain = model->forward(tiny_ids(), inputs);
  EXPECT_TRUE(bit_equal(out.logits[1][3], torch::zeros({11})));
  EXPECT_TRUE(torch::allclose(out.logits[0], plain.logits[0], 1e-5, 1e-5));
  EXPECT_TRUE(
      torch::allclose(frozen.logits(out.encoder.last_hidden_state[0]), out.logits[0], 1e-5, 1e-5));
  torch::NoGradGuard no_grad;
  model->head->bias.add_(1.0);
  EXPECT_ERROR(frozen.forward(tiny_ids()), c10::Error, "freeze");
}

TEST(Classifier, ProbabilitiesFollowTheProblem) {
  const auto options_of = [](int64_t outputs) {
    return ClassifierOptions(
        EncoderOptions(EncoderEmbeddingsOptions(9, 8),
                       TransformerEncoderOptions(TransformerEncoderLayerOptions(8, 2), 1)),
        head::Kind::Sequence, EncoderHeadOptions(8, outputs));
  };
  const auto logits = torch::tensor({{1.0F, -2.0F}});
  EXPECT_TRUE(bit_equal(class_probabilities(options_of(2), logits), logits.softmax(-1)));
  EXPECT_TRUE(bit_equal(class_probabilities(options_of(1), logits), logits.sigmoid()));
  EXPECT_TRUE(
      bit_equal(class_probabilities(options_of(2).problem(head::Problem::MultiLabel), logits),
                logits.sigmoid()));
  EXPECT_TRUE(bit_equal(
      class_probabilities(options_of(1).problem(head::Problem::Regression), logits), logits));
}

EncoderOptions image_options() {
  const auto layer = TransformerEncoderLayerOptions(8, 2).d_ff(12);
  return EncoderOptions(VisionEmbeddingsOptions(8, 4, 8).register_tokens(2),
                        TransformerEncoderOptions(layer, 1));
}

TEST(Classifier, TakesTheMeanOfPatches) {
  const auto both = EncoderHeadOptions(16, 3).rows(head::Rows::FirstAndMean).first_row(3);
  Classifier model(ClassifierOptions(image_options(), head::Kind::Image, both));
  model->eval();
  const auto pixels = torch::randn({2, 3, 8, 8});
  const auto out = model->forward(pixels);
  const auto& hidden = out.encoder.last_hidden_state;
  ASSERT_EQ(hidden.size(1), 7);
  const auto rows = torch::cat({hidden.select(1, 0), hidden.slice(1, 3).mean(1)}, 1);
  EXPECT_TRUE(bit_equal(out.logits, model->head->logits(rows)));
  EXPECT_TRUE(freeze(model).forward(pixels).logits.allclose(out.logits, 1e-5, 1e-5));
  EXPECT_CONTAINS(
      message_of([&] {
        Classifier(ClassifierOptions(image_options(), head::Kind::Image,
                                     EncoderHeadOptions(8, 3).rows(head::Rows::FirstAndMean)));
      }),
      "d_model of the head must be that of the encoder's output, 16. Got 8");
  model->head->options.first_row(7);
  EXPECT_CONTAINS(message_of([&] { model->forward(pixels); }),
                  "[EncoderHead] there must be rows from first_row 7 on. Got [2, 7, 8]");
}

TEST(Classifier, ActivatesItsLogits) {
  auto options = EncoderHeadOptions(8, 3).rows(head::Rows::MeanOfRows);
  EncoderHead plain(options);
  EncoderHead with(options.output_activation(Activation::Tanh));
  const torch::NoGradGuard no_grad;
  with->weight.copy_(plain->weight), with->bias.copy_(plain->bias);
  EncoderOutput out;
  out.last_hidden_state = torch::randn({2, 4, 8});
  EXPECT_TRUE(bit_equal(with->forward(out), plain->forward(out).tanh()));
}

TEST(Classifier, RefusesSummariesWithoutLabels) {
  TinyFolder folder;
  folder.config = {{"model_type", "xlm"}, {"architectures", {"XLMForSequenceClassification"}},
                   {"emb_dim", 8},        {"n_heads", 2},
                   {"n_layers", 1},       {"vocab_size", 11}};
  folder.add("attentions.0.q_lin.weight", {8, 8});
  const auto refused = [&](const char* setting, const nlohmann::json& value) {
    folder.config[setting] = value;
    const std::string message = message_of([&] { load_classifier(folder.write()); });
    folder.config.erase(setting);
    return message;
  };
  EXPECT_CONTAINS(refused("summary_type", "attn"),
                  "summary_type must be first, last, mean or cls_index");
  EXPECT_CONTAINS(refused("summary_use_proj", false), "summary_use_proj must be true");
  EXPECT_CONTAINS(refused("summary_proj_to_labels", false), "summary_proj_to_labels must be true");
  EXPECT_CONTAINS(
      refused("summary_activation", "loud"),
      "summary_activation must be the name of an activation of transformers that posenc has");
}

// tests/differential/saved_heads.py opens the folders in transformers.
TEST(Classifier, IsSavedWithItsLabelsAndRead) {
  const TempDir out;
  const std::pair<TinyFolder, head::Kind> cases[] = {{sequence_folder(), head::Kind::Sequence},
                                                     {masked_folder(), head::Kind::Masked}};
  for (const auto& [folder, kind] : cases) {
    auto model = load_classifier(folder.write());
    if (kind == head::Kind::Sequence) {
      model->options.labels({"a", "b", "c"}).problem(head::Problem::MultiLabel);
    }
    const std::string path = out / std::to_string(static_cast<int>(kind));
    save_pretrained(model, path);
    auto again = load_classifier(path);
    EXPECT_EQ(again->options.kind(), kind);
    EXPECT_EQ(again->options.labels(), model->options.labels());
    EXPECT_EQ(again->options.problem(), model->options.problem());
    EXPECT_EQ(again->options.head().tied(), model->options.head().tied());
    EXPECT_TRUE(bit_equal(again->forward(tiny_ids()).logits, model->forward(tiny_ids()).logits));
  }
}

TEST(Classifier, IsNotSavedAsSomethingElse) {
  const TempDir out;
  const auto folder = sequence_folder();
  auto model = load_classifier(folder.write());
  StateDict head;
  head.insert("classifier.weight", torch::ones({3, 8}));
  EXPECT_ERROR(save_pretrained(model, out / "new", SavePretrainedOptions().head(head)),
               c10::ValueError, "head must be empty for a Classifier, which has its own");
  const std::string two = R"({"id2label": {"0": "no", "1": "yes"}})";
  EXPECT_ERROR(save_pretrained(model, out / "new", SavePretrainedOptions().config(two)),
               c10::ValueError, "outputs of the head must be that of the Classifier, 3. Got 2");
  model->head->options.activation(Activation::Tanh);
  EXPECT_ERROR(save_pretrained(model, out / "new"), c10::ValueError,
               "activation of the head must be that of the Classifier");
  model = load_classifier(masked_folder().write());
  model->head->norm->options.eps(0.5);
  EXPECT_ERROR(save_pretrained(model, out / "new"), c10::ValueError,
               "the options of norm of the head must be those that the head gives it");
  EXPECT_EQ(out.entries(), 0U);
}

// T5 has no default for what its decoder begins with.
TEST(Classifier, OnADecoderNeedsItsFirstToken) {
  TinyFolder folder;
  folder.config = {{"model_type", "t5"}, {"architectures", {"T5ForSequenceClassification"}},
                   {"d_model", 8},       {"num_heads", 2},
                   {"d_kv", 4},          {"num_layers", 1},
                   {"vocab_size", 11},   {"d_ff", 12}};
  folder.add("transformer.encoder.block.0.layer.0.SelfAttention.q.weight", {8, 8});
  EXPECT_CONTAINS(message_of([&] { load_classifier(folder.write()); }), "decoder_start_token_id");
  folder.config["decoder_start_token_id"] = 11;
  EXPECT_CONTAINS(message_of([&] { load_classifier(folder.write()); }),
                  "decoder_start_token_id must be an integer from 0 to 10. Got 11");
}

// A decoder that begins with a token, or with the last of the source.
EncoderOptions with_decoder(std::optional<int64_t> start) {
  TransformerEncoderOptions layers(TransformerLayerOptions(8, 2).d_ff(6), 1);
  return EncoderOptions(EncoderEmbeddingsOptions(20, 8), layers)
      .transformer(TransformerOptions(20, 20)
                       .d_model(8)
                       .num_heads(2)
                       .d_ff(6)
                       .num_encoder_layers(1)
                       .num_decoder_layers(1)
                       .tie(Tying::ThreeWay)
                       .output_bias(false))
      .decoder_start_token_id(start)
      .pad_token_id(1)
      .eos_token_id(2)
      .pooling(encoder::Pooling::LastEndToken);
}

TEST(Classifier, OnADecoderEncodesEachTextAsIfAlone) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  for (const std::optional<int64_t> start : {std::optional<int64_t>(), std::optional<int64_t>(5)}) {
    Encoder model(with_decoder(start));
    model->eval();
    const auto frozen = freeze(model);
    const auto ids = torch::tensor({{3, 2, 7, 2}, {4, 9, 2, 1}});  // of two ends, and of one
    const auto given = EncoderInputs().attention_mask(ids.ne(1));
    const auto both = model->forward(ids, given), of_frozen = frozen.forward(ids, given);
    const auto alone = model->forward(ids.slice(0, 1).slice(1, 0, 3));
    EXPECT_TRUE(both.pooled[1].allclose(alone.pooled[0], 1e-5, 1e-6));
    EXPECT_TRUE(both.pooled[0].equal(both.last_hidden_state[0][3]));
    EXPECT_TRUE(of_frozen.pooled.allclose(both.pooled, 1e-5, 1e-5));
    EXPECT_EQ(of_frozen.last_hidden_state[1][3].abs().sum().item<float>(), 0.0F);
    EXPECT_ERROR(model->forward(torch::tensor({{3, 4}})), c10::ValueError,
                 "each sequence must have an end, the id 2");
    EXPECT_ERROR(model->forward(ids, EncoderInputs().output_attentions(true)), c10::ValueError,
                 "an encoder with a decoder takes no output_attentions");
    EXPECT_ERROR(save_pretrained(model, "never"), c10::ValueError,
                 "an encoder with a decoder must be saved with its head");
  }
  EXPECT_ERROR(Encoder(with_decoder(std::nullopt).pad_token_id(std::nullopt)), c10::ValueError,
               "transformer must be with a decoder_start_token_id, or a pad_token_id");
}

}  // namespace
}  // namespace posenc::testing
