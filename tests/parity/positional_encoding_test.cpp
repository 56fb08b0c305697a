// Notebooks 00 and 03: PositionalEncoding; and the whole table of every notebook, bit for bit.

#include "posenc/positions/nn/positional_encoding.h"

#include <ATen/Parallel.h>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/parity.h"

namespace posenc {
namespace {

using testing::Fixture;
using testing::fixtures;

TEST(PositionalEncodingParity, MatchesNotebook) {
  for (const Fixture& fixture : fixtures("positional_encoding")) {
    PositionalEncoding module(fixture.option<int64_t>("d_model", 0),
                              fixture.option<int64_t>("max_len", 0));
    testing::expect_parity(fixture, *module,
                           [&](const Golden& golden) { return module->forward(golden.input("x")); },
                           {testing::Op::Forward, testing::Op::Forward, "pe", {}});
  }
}

// Computed just before by this machine's Python on one thread; our number of threads varies.
TEST(SinusoidParity, EveryNotebooksTableHasPythonsBits) {
  const int before = at::get_num_threads();
  for (const Fixture& fixture : fixtures("sinusoid", "notebook_")) {
    SCOPED_TRACE(fixture.name);
    const auto options =
        preset(fixture.option<std::string>("preset", ""), fixture.option<int64_t>("d_model", 0));
    for (const int threads : {1, 2, 4}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(testing::bit_equal(sinusoid_table(options, fixture.option<int64_t>("max_len", 0)),
                                     fixture["out.output"]))
          << threads << " threads";
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace posenc
