//! Members ordered by how many partitions they have, where one more or one less costs the same few steps however many they are.

/// Members by their load, ascending. One more or one less moves a member to the edge of its level and moves that edge.
#[derive(Debug)]
pub(super) struct Levels {
    order: Vec<u32>,
    /// For each load, where in the order the members with that load or more begin; the last is the end of the order.
    starts: Vec<u32>,
}

impl Levels {
    /// Notes each member's place in `places`, which all levels of a group share.
    pub(super) fn new(members: &[u32], loads: &[u32], places: &mut [u32]) -> Self {
        let load = |member: u32| loads[member as usize];
        let mut order = members.to_vec();
        // The last of a level is taken first: members are to be taken in their order.
        order.sort_unstable_by_key(|&member| (load(member), std::cmp::Reverse(member)));
        let mut starts = vec![0];
        for (place, &member) in (0..).zip(&order) {
            places[member as usize] = place;
            starts.resize(load(member) as usize + 1, place);
        }
        starts.push(order.len() as u32);
        Self { order, starts }
    }

    /// The load of the least loaded member.
    pub(super) fn least_load(&self, loads: &[u32]) -> u32 {
        loads[self.order[0] as usize]
    }

    /// A least loaded member.
    pub(super) fn least_loaded(&self, loads: &[u32]) -> u32 {
        let load = self.least_load(loads) as usize;
        self.order[self.starts[load + 1] as usize - 1]
    }

    /// The member, whose load is the one given, is about to have one more.
    pub(super) fn raise(&mut self, member: u32, load: u32, places: &mut [u32]) {
        let above = load as usize + 1;
        if above + 1 == self.starts.len() {
            self.starts.push(self.order.len() as u32);
        }
        self.starts[above] -= 1;
        self.swap(places[member as usize], self.starts[above], places);
    }

    /// The member, whose load is the one given, is about to have one less.
    pub(super) fn lower(&mut self, member: u32, load: u32, places: &mut [u32]) {
        let start = self.starts[load as usize];
        self.starts[load as usize] += 1;
        self.swap(places[member as usize], start, places);
    }

    fn swap(&mut self, a: u32, b: u32, places: &mut [u32]) {
        self.order.swap(a as usize, b as usize);
        for place in [a, b] {
            places[self.order[place as usize] as usize] = place;
        }
    }
}
