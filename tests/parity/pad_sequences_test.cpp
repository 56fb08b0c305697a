// Notebook 01: padded batches, their mask, look-up in a table of TOKEN_CNT + 1 rows.

#include "posenc/positions/functional/pad_sequences.h"

#include "posenc/positions/nn/token_embedding.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/load.h"
#include "support/parity.h"

namespace posenc {
namespace {

using testing::Fixture;

functional::PaddedBatch padded(const Fixture& fixture) {
  std::vector<torch::Tensor> sequences;
  int64_t begin = 0;
  for (int64_t i = 0; i < fixture["in.lengths"].size(0); ++i) {
    const auto length = fixture["in.lengths"][i].item<int64_t>();
    sequences.push_back(fixture["in.sequences"].slice(0, begin, begin + length));
    begin += length;
  }
  return functional::pad_sequences(sequences, functional::PadSequencesOptions()
                                                  .max_len(fixture.option<int64_t>("max_len", 0))
                                                  .pad_id(fixture.option<int64_t>("pad_id", 0)));
}

TEST(PadSequencesParity, MatchesNotebook) {
  for (const Fixture& fixture : testing::fixtures("pad_sequences")) {
    SCOPED_TRACE(fixture.name);
    const auto batch = padded(fixture);
    EXPECT_TRUE(testing::bit_equal(batch.ids, fixture["out.output"]));
    EXPECT_TRUE(testing::bit_equal(batch.mask, fixture["out.mask"]));
    EXPECT_TRUE(testing::bit_equal(batch.lengths, fixture["in.lengths"]));
  }
}

TEST(PadSequencesParity, LookUpAndTableMatchNotebook) {
  for (const Fixture& fixture : testing::fixtures("pad_sequences", "lookup")) {
    SCOPED_TRACE(fixture.name);
    TokenEmbedding tokens(fixture["param.weight"].size(0), fixture["param.weight"].size(1));
    StateDict weight;
    weight.insert("embedding.weight", fixture["param.weight"]);
    load_state_dict(*tokens, weight);
    const auto embedded = tokens->forward(padded(fixture).ids);
    EXPECT_TRUE(testing::bit_equal(embedded, fixture["out.embedded"]));
    (embedded * fixture["in.cotangent"]).sum().backward();
    EXPECT_TRUE(testing::bit_equal(tokens->embedding->weight.grad(), fixture["grad.weight"]));

    const auto table = sinusoid_table(preset("notebook_001", embedded.size(2)), embedded.size(1));
    EXPECT_TRUE(testing::within(testing::Op::ForeignTable, table, fixture["out.table"]));
    if (fixture.live) {
      EXPECT_TRUE(testing::bit_equal(table, fixture["out.table"]));
    }
  }
}

}  // namespace
}  // namespace posenc
