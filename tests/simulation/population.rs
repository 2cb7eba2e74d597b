//! Who is in the world when a run begins.

use convoke::coordinator::request::Text;

use crate::client::{Client, Role};
use crate::consumer::Consumer;
use crate::external::External;
use crate::member::Member;
use crate::mixed::Mixed;
use crate::plan::ExternalPlan;
use crate::standalone::Standalone;
use crate::world::{Planted, World};

impl World {
    pub(crate) fn populate(&mut self) {
        let mut last_number = self.last_number;
        let mut fresh = || {
            last_number += 1;
            last_number
        };
        for (index, group) in self.plan.groups.iter().enumerate() {
            let kind = if group.of_changing_topics { "changing" } else { "group" };
            let group_id: Text = format!("{kind}-{index}").into();
            self.upstream.add(&mut self.rng, &group_id, false, &mut fresh);
            for (number, consumer) in group.consumers.iter().enumerate() {
                let consumer = Consumer::new(&group_id, group, number, consumer);
                self.clients.push(Client::new(Role::Consumer(consumer)));
            }
            self.clients.extend(externals(&group_id, &group.externals));
            self.groups.push(group_id);
        }
        for index in 0..self.plan.standalone {
            let group_id: Text = format!("solo-{index}").into();
            self.upstream.add(&mut self.rng, &group_id, true, &mut fresh);
            self.groups.push(group_id);
        }
        for index in 0..self.plan.standalone {
            let group_id = self.groups[self.plan.groups.len() + index].clone();
            let standalone = Standalone::new(group_id, self.groups.clone());
            self.clients.push(Client::new(Role::Standalone(standalone)));
        }
        for (index, group) in self.plan.consumer_groups.iter().enumerate() {
            let group_id: Text = format!("consumers-{index}").into();
            self.upstream.add(&mut self.rng, &group_id, false, &mut fresh);
            for (number, member) in group.members.iter().enumerate() {
                let member = Member::new(&group_id, number, member, self.planted == Planted::ReadsOn);
                self.clients.push(Client::new(Role::Member(member)));
            }
            self.clients.extend(externals(&group_id, &group.externals));
            self.groups.push(group_id);
        }
        for (index, mixed) in self.plan.mixed_groups.iter_mut().enumerate() {
            let group_id: Text = format!("mixed-{index}").into();
            self.upstream.add(&mut self.rng, &group_id, false, &mut fresh);
            let reads_on = self.planted == Planted::ReadsOn;
            for classic in &mut mixed.group.consumers {
                classic.reads_on = self.planted == Planted::ClassicReadsOn;
            }
            for (number, plans) in mixed.group.consumers.iter().zip(&mixed.members).enumerate() {
                let client = Mixed::new(&group_id, number, &mixed.group, plans, reads_on);
                self.clients.push(Client::new(Role::Mixed(Box::new(client))));
            }
            self.clients.extend(externals(&group_id, &mixed.group.externals));
            self.groups.push(group_id);
        }
        self.last_number = last_number;
    }
}

fn externals(group_id: &Text, plans: &[ExternalPlan]) -> impl Iterator<Item = Client> {
    let external = |(number, plan)| Client::new(Role::External(External::new(group_id, number, plan)));
    plans.iter().enumerate().map(external)
}
